"""The life of sandboxes, and what else a server has, blocking."""

import base64
import hashlib
import hmac
import json
import os
import socket
import threading
import time
import unittest
import uuid

from fixture import ISOLATION, shared_sandbox

from svc_sdk import (
    Capabilities,
    Client,
    Events,
    Images,
    Organization,
    Sandbox,
    SecretOption,
    Secrets,
    SvcError,
    Usage,
    Webhooks,
    verify_webhook,
)


class Sandboxes(unittest.TestCase):
    def test_a_named_sandbox_is_stopped_and_found_again(self) -> None:
        name = f"kept-{uuid.uuid4().hex[:8]}"
        options = {"name": name, "image": "python", "isolation": ISOLATION, "labels": {"of": name}}
        with Sandbox.get_or_create(**options) as sandbox:  # type: ignore[arg-type]
            sandbox.files.write("/note", "kept")
            sandbox.rename(name=f"{name}-2")
        self.assertEqual(sandbox.refresh().status, "stopped")
        with self.assertRaises(SvcError) as caught:
            sandbox.exec("true")
        self.assertEqual(caught.exception.code, "sandbox_not_running")
        again = Sandbox.connect(f"{name}-2")
        again.start()
        self.assertEqual(again.files.read_text("/note"), "kept")
        self.assertEqual([each.id for each in Sandbox.list(labels={"of": name})], [sandbox.id])
        snapshot = again.snapshot(f"{name}-snapshot")
        again.remove()
        with Sandbox.create(snapshot_id=snapshot.id, isolation=ISOLATION) as copy:
            self.assertEqual(copy.files.read_text("/note"), "kept")
            copy.set_timeout(3_600_000)
            self.assertIsNotNone(copy.info.ends_at)
            copy.set_lifecycle(idle_timeout_secs=600)
            copy.keep_alive()
        with self.assertRaisesRegex(SvcError, "sandbox_not_found"):
            Sandbox.connect(copy.id)

    def test_secrets_are_those_of_the_organization_that_is_named(self) -> None:
        with self.assertRaisesRegex(SvcError, "the slug of an organization"):
            Secrets.list()
        # An API key cannot manage them, which the server says.
        with self.assertRaises(SvcError) as caught:
            Secrets.list(organization="default")
        self.assertEqual(caught.exception.status, 401)

    def test_options_that_are_not_known_are_refused_by_name(self) -> None:
        with self.assertRaisesRegex(TypeError, "'imagee' here; did you mean 'image'"):
            Sandbox.create(imagee="python")  # type: ignore[call-arg]
        with self.assertRaisesRegex(TypeError, "workdir"):
            shared_sandbox().exec("true", workdir="/")  # type: ignore[call-arg]
        with self.assertRaises(SvcError) as caught:
            Sandbox.create()
        self.assertEqual(caught.exception.details, {"field": "image"})

    def test_the_network_is_explained_changed_and_logged(self) -> None:
        sandbox = shared_sandbox()
        sandbox.network.update({"policy": {"default_egress": "deny", "rules": []}})
        answer = sandbox.network.explain({"host": "9.9.9.9", "port": 80})
        self.assertEqual((answer.action, answer.decided_by), ("deny", "default"))
        sandbox.exec("nc", ["-w", "1", "9.9.9.9", "80"])
        denied = next(each for each in sandbox.network.log(follow=True, verdict="deny"))
        self.assertEqual(denied.address, "9.9.9.9")

    def test_a_secret_is_not_shown(self) -> None:
        secret = SecretOption(hosts=["api.example.com"], value="hidden-value")
        self.assertNotIn("hidden-value", repr(secret))
        with Sandbox.create(image="python", secrets={"KEY": secret}, isolation=ISOLATION) as sandbox:
            self.assertNotIn("hidden", sandbox.shell("echo $KEY").text())
            self.assertNotIn("hidden-value", repr(sandbox.info))

    def test_the_log_is_followed(self) -> None:
        sandbox = shared_sandbox()
        past = list(sandbox.logs(sources=["system"]))
        self.assertEqual([each.text for each in past[:2]], ["starting", "running"])
        following = sandbox.logs(follow=True, sources=["system"], after=past[0].cursor)
        self.assertEqual(next(iter(following)).text, "running")
        self.assertEqual(len(list(sandbox.logs(sources=["system"], tail=1))), 1)
        self.assertGreater(sandbox.metrics().range.end, 0)

    def test_a_server_says_what_it_has(self) -> None:
        sandbox = shared_sandbox()
        created = next(Events.list(type="sandbox_created", sandbox_id=sandbox.id))
        self.assertEqual(Events.get(created.id).hash, created.hash)
        self.assertIsInstance(Usage.quotas().hard_cap, bool)
        self.assertTrue(Capabilities.get().isolation.classes)
        self.assertTrue(any("python" in str(each.references) for each in Images.list()))
        organization = Organization.me()
        self.assertEqual(organization.slug, Client.of_environment().slug())

    def test_a_webhook_is_made_and_its_messages_are_verified(self) -> None:
        webhook = Webhooks.create("https://example.com/hook", ["sandbox.*"], enabled=False)
        self.assertIn(webhook.id, [each.id for each in Webhooks.list()])
        Webhooks.remove(webhook.id)
        secret, body, sent = "whsec_" + base64.b64encode(b"k" * 24).decode(), b'{"type": "webhook_test"}', str(int(time.time()))
        mac = hmac.new(b"k" * 24, f"msg_1.{sent}.".encode() + body, hashlib.sha256).digest()
        headers = {"Webhook-Id": "msg_1", "webhook-timestamp": sent}
        signature = {"webhook-signature": f"v1,{base64.b64encode(mac).decode()}"}
        self.assertEqual(verify_webhook(secret, {**headers, **signature}, body)["type"], "webhook_test")
        for wrong in ({"webhook-signature": "v1,AAAA"}, {**signature, "webhook-timestamp": "1"}, {}):
            with self.assertRaisesRegex(SvcError, "forbidden"):
                verify_webhook(secret, {**headers, **wrong}, body)


class Failures(unittest.TestCase):
    def test_a_create_whose_answer_is_lost_makes_one_sandbox(self) -> None:
        label = uuid.uuid4().hex
        with Cutter() as cutter:
            client = Client(api_url=cutter.url, api_key=os.environ["SVC_API_KEY"])
            with Sandbox.create(image="python", labels={"once": label}, client=client, isolation=ISOLATION) as sandbox:
                self.assertEqual(cutter.cut, 1)
                self.assertEqual([each.id for each in Sandbox.list(labels={"once": label})], [sandbox.id])

    def test_the_same_key_gives_the_same_sandbox(self) -> None:
        key = uuid.uuid4().hex
        name = f"once-{key[:8]}"
        made = [
            Sandbox.create(name=name, image="python", idempotency_key=key, isolation=ISOLATION).id
            for _ in range(2)
        ]
        Sandbox.connect(name).remove()
        self.assertEqual(made[0], made[1])

    def test_a_server_that_is_not_there_is_named(self) -> None:
        client = Client(api_url="http://127.0.0.1:9", max_retries=0)
        with self.assertRaises(SvcError) as caught:
            Sandbox.connect("any", client=client)
        self.assertEqual(caught.exception.code, "connection_failed")
        self.assertIn("127.0.0.1:9", caught.exception.message)

    def test_a_wrong_key_is_refused_and_never_shown(self) -> None:
        client = Client(api_key="svc_wrong")
        with self.assertRaises(SvcError) as caught:
            Sandbox.connect("any", client=client)
        self.assertEqual((caught.exception.code, caught.exception.status), ("invalid_api_key", 401))
        self.assertNotIn("svc_wrong", repr(caught.exception) + repr(vars(caught.exception)))
        with self.assertRaises(SvcError):
            Client(api_key="two\r\nlines")

    def test_a_redirect_is_not_followed(self) -> None:
        with Redirecter() as server:
            client = Client(api_url=server.url, max_retries=0)
            with self.assertRaises(SvcError):
                client.call("sandboxes.list")
            record = {**json.loads(json.dumps(shared_sandbox()._inner._record))}
            sandbox = type(shared_sandbox()._inner)(client._inner, record)
            with self.assertRaises(SvcError):
                Sandbox._of(sandbox).exec("true", timeout_ms=5000)
        self.assertEqual(server.followed, 0)


class Cutter:
    """Forwards connections to the server, and closes the first that creates a sandbox instead of answering."""

    def __init__(self) -> None:
        host, _, port = os.environ["SVC_API_URL"].removeprefix("http://").partition(":")
        self._server = (host, int(port))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.cut = 0

    def __enter__(self) -> "Cutter":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            state = {"is_create": False}
            threading.Thread(target=self._forward, args=(client, server, state), daemon=True).start()
            threading.Thread(target=self._back, args=(server, client, state), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket, state: dict[str, bool]) -> None:
        while data := _receive(client):
            if data.startswith(b"POST /v1/sandboxes?"):
                state["is_create"] = True
            server.sendall(data)
        server.close()

    def _back(self, server: socket.socket, client: socket.socket, state: dict[str, bool]) -> None:
        while data := _receive(server):
            if state["is_create"] and self.cut == 0:
                self.cut += 1
                break
            client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)
        client.close()


class Redirecter:
    """Answers everything with a redirect to itself, and counts requests of the place it names."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.followed = 0

    def __enter__(self) -> "Redirecter":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            with client:
                request = _receive(client)
                self.followed += b" /elsewhere" in request
                url = self.url.replace("http", "ws") if b"websocket" in request.lower() else self.url
                place = f"{url}/elsewhere".encode()
                client.sendall(b"HTTP/1.1 302 Found\r\nlocation: " + place + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except OSError:
        return b""
