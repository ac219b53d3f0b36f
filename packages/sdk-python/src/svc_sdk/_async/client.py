"""A connection to one server with one credential."""

from __future__ import annotations

import asyncio
import functools
import json
import re
import ssl
import weakref
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.request import getproxies, proxy_bypass
from uuid import uuid4

import httpx

from .._channel.transport import Transport, dial
from .._client.budget import Budget, with_retries
from .._client.config import read_environment
from .._client.content import pieces_of
from .._client.rest_request import PreparedRequest, channel_path, prepare_request
from .._client.server_events import StreamEvent, read_server_events
from .._version import __version__
from ..errors import SvcError, error_of_answer

_DEFAULT_API_URL = "http://127.0.0.1:5555"
_USER_AGENT = f"svc-sdk-python/{__version__}"
_Loop = asyncio.AbstractEventLoop


class AsyncClient:
    """Everything else in this library goes through one; calls may overlap.

    Every change carries an idempotency key of its own, so that a repetition after a lost answer does
    nothing twice. One client serves any number of event loops.
    """

    api_url: str
    #: Slug of the organization to act in; None for API keys, which name theirs.
    organization: str | None
    #: For each call that is given no other. Processes and streams are not limited by it.
    timeout_ms: float
    #: How often a call is repeated at most after failures that pass.
    max_retries: int

    def __init__(
        self,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        organization: str | None = None,
        timeout_ms: float = 60_000,
        max_retries: int = 3,
    ) -> None:
        """`api_url`, `api_key` and `organization` are those of SVC_API_URL, SVC_API_KEY and SVC_ORG
        unless given; the organization of the environment belongs to the key of the environment."""
        environment = read_environment()
        inherited = environment.organization if api_key is None else None
        self.api_url = _check_url(api_url or environment.api_url or _DEFAULT_API_URL)
        self.organization = organization or inherited
        self.timeout_ms = timeout_ms
        self.max_retries = max_retries
        self._api_key = _check_key(api_key if api_key is not None else environment.api_key)
        self._slug: str | None = None
        self._clients: weakref.WeakKeyDictionary[_Loop, httpx.AsyncClient]
        self._clients = weakref.WeakKeyDictionary()

    @staticmethod
    def of_environment() -> AsyncClient:
        """The client of SVC_API_URL and SVC_API_KEY, made at its first use."""
        return _of_environment()

    async def call(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_ms: float | None = None,
        organization: str | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Calls any operation of the control plane by its name in docs/reference/operations.md, and
        gives the JSON of its answer. A change that is asked for again under its `idempotency_key` is
        not made twice; each has one of its own unless given."""
        request = self._prepare(name, params, query, headers, body, organization, idempotency_key)
        budget = Budget(self.timeout_ms if timeout_ms is None else timeout_ms)

        async def attempt() -> Any:
            response = await self._send(request)
            try:
                return _json_of(await response.aread())
            except httpx.TransportError as error:
                raise self._unreachable(error) from error
            finally:
                await response.aclose()

        return await with_retries(budget, self._retries_of(request), attempt)

    async def events(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_ms: float | None = None,
    ) -> AsyncIterator[StreamEvent]:
        """The events of an operation that streams them. The time limit ends with the answer's head."""
        chunks = await self._open(name, params, query, headers, body, timeout_ms)
        return read_server_events(chunks)

    async def download(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_ms: float | None = None,
    ) -> AsyncIterator[bytes]:
        """The bytes of an operation that streams them. The time limit ends with the answer's head."""
        return await self._open(name, params, query, headers, None, timeout_ms)

    async def rpc(
        self, method: str, params: Mapping[str, Any], *, timeout_ms: float | None = None
    ) -> Any:
        """Calls a method of the JSON-RPC surface, once: it knows no idempotency keys."""
        text = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params)}
        data = json.dumps(text, ensure_ascii=False).encode()
        headers = {"content-type": "application/json"}
        request = PreparedRequest("POST", "/api/v1/rpc", headers, data, None, "json")

        async def attempt() -> Any:
            response = await self._send(request)
            answer = _json_of(await response.aread())
            if answer.get("error") is None:
                return answer.get("result")
            data = dict(answer["error"].get("data") or {})
            code = data.pop("code", "invalid_request")
            said = answer["error"].get("message", "")
            raise SvcError(code, said, status=response.status_code, details=data or None)

        limit = self.timeout_ms if timeout_ms is None else timeout_ms
        return await with_retries(Budget(limit), 0, attempt)

    async def slug(self, *, timeout_ms: float | None = None) -> str:
        """The slug of the organization that calls act in: the one of the client, or of its API key."""
        if self._slug is None:
            own = self.organization
            if own is None:
                own = str((await self.call("organizations.own", timeout_ms=timeout_ms))["slug"])
            self._slug = own
        return self._slug

    async def close(self) -> None:
        """Closes the idle connections of the current event loop; the client can still be used."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    @property
    def _is_direct(self) -> bool:
        """Whether the environment names no proxy for the server."""
        url = httpx.URL(self.api_url)
        proxies = getproxies()
        is_named = url.scheme in proxies or "all" in proxies
        return not is_named or bool(proxy_bypass(url.netloc.decode("ascii")))

    async def _dial(self, sandbox_id: str, name: str) -> Transport:
        """Opens a WebSocket of a sandbox."""
        path = channel_path(sandbox_id, name, self.organization)
        url = f"ws{self.api_url.removeprefix('http')}{path}"
        context = _tls_context() if url.startswith("wss:") else None
        headers = {**self._credential(), "user-agent": _USER_AGENT}
        return await dial(url, headers, context, lambda: self._why_refused(sandbox_id))

    async def _why_refused(self, sandbox_id: str) -> SvcError | None:
        """Old versions of `websockets` do not say why a connection was refused."""
        try:
            record = await self.call("sandboxes.get", params={"sandbox_id": sandbox_id})
        except SvcError as error:
            return error
        if record["status"] == "running":
            return None
        said = f"Sandbox '{record['name']}' is {record['status']}; start it first"
        return SvcError("sandbox_not_running", said, details={"status": record["status"]})

    def _prepare(
        self,
        name: str,
        params: Mapping[str, str] | None,
        query: Mapping[str, object] | None,
        headers: Mapping[str, str] | None,
        body: Any,
        organization: str | None,
        idempotency_key: str | None,
    ) -> PreparedRequest:
        request = prepare_request(
            name,
            params=params or {},
            query=query or {},
            headers=headers or {},
            body=body,
            organization=organization or self.organization,
        )
        if request.method != "GET":
            request.headers["idempotency-key"] = idempotency_key or uuid4().hex
        return request

    def _retries_of(self, request: PreparedRequest) -> int:
        return self.max_retries if request.content is None else 0

    async def _open(
        self,
        name: str,
        params: Mapping[str, str] | None,
        query: Mapping[str, object] | None,
        headers: Mapping[str, str] | None,
        body: Any,
        timeout_ms: float | None,
    ) -> AsyncIterator[bytes]:
        request = self._prepare(name, params, query, headers, body, None, None)
        budget = Budget(self.timeout_ms if timeout_ms is None else timeout_ms)
        response = await with_retries(
            budget, self._retries_of(request), lambda: self._send(request)
        )
        return self._chunks_of(response)

    async def _chunks_of(self, response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.aiter_raw():
                yield chunk
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        finally:
            await response.aclose()

    async def _send(self, request: PreparedRequest) -> httpx.Response:
        """The answer with its body unread. Raises SvcError unless it is a success."""
        client = self._client()
        headers = {**request.headers, **self._credential()}
        content = request.body if request.content is None else pieces_of(request.content)
        outgoing = client.build_request(
            request.method, f"{self.api_url}{request.path}", headers=headers, content=content
        )
        try:
            # SAFETY: a redirect is not followed, since it would send the credential elsewhere.
            response = await client.send(outgoing, stream=True, follow_redirects=False)
            if response.is_success:
                return response
            try:
                text = (await response.aread()).decode("utf-8", "replace")
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        raise error_of_answer(response.status_code, response.headers, text)

    def _client(self) -> httpx.AsyncClient:
        """Connections belong to the event loop that opened them."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
            headers = {"user-agent": _USER_AGENT, "accept-encoding": "identity"}
            verify: Any = _tls_context() if self.api_url.startswith("https:") else False
            client = httpx.AsyncClient(verify=verify, limits=limits, timeout=None, headers=headers)
            self._clients[loop] = client
        return client

    def _credential(self) -> dict[str, str]:
        return {} if self._api_key is None else {"authorization": f"Bearer {self._api_key}"}

    def _unreachable(self, error: Exception) -> SvcError:
        reason = f": {error}" if str(error) else f": {type(error).__name__}"
        return SvcError("connection_failed", f"The server at {self.api_url} cannot be reached{reason}")


@functools.cache
def _of_environment() -> AsyncClient:
    return AsyncClient()


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """The authorities of the system, or those of SSL_CERT_FILE, for requests and channels alike."""
    return ssl.create_default_context()


def _check_url(text: str) -> str:
    if re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", text):
        return text.rstrip("/")
    said = "The address of the server must be like http://127.0.0.1:5555"
    raise SvcError("invalid_request", said, details={"field": "api_url"})


def _check_key(key: str | None) -> str | None:
    """SAFETY: a credential with other characters could add headers of its own."""
    if not key:
        return None
    if re.fullmatch(r"[\x21-\x7e]+", key):
        return key
    raise SvcError("invalid_api_key", "The API key has characters that no key has")


def _json_of(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError as error:
        raise SvcError("internal", "The server answered with something that is no JSON") from error
