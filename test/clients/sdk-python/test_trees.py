"""Folders that are copied into a sandbox and out of it, blocking, and links to files."""

import asyncio
import os
import pathlib
import tempfile
import unittest
import urllib.error
import urllib.request

from fixture import shared_sandbox

from svc_sdk import AsyncSandbox, Sandbox, SvcError


class Trees(unittest.TestCase):
    def setUp(self) -> None:
        self.sandbox: Sandbox = shared_sandbox()
        self.files = self.sandbox.files
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.remote = f"/tmp/trees-{self.id().rpartition('.')[2]}"

    def test_a_tree_comes_back_as_it_went(self) -> None:
        source = self.folder / "source"
        (source / "grüße/deep").mkdir(parents=True)
        (source / "empty").mkdir()
        for number in range(30):
            (source / f"grüße/deep/{number}").write_bytes(str(number).encode())
        (source / "large").write_bytes(bytes(range(256)) * 10_000)
        (source / "run.sh").write_text("#!/bin/sh\n")
        (source / "run.sh").chmod(0o755)
        (source / "link").symlink_to("grüße/deep/3")
        os.mkfifo(source / "pipe")
        (source / "empty").chmod(0o555)
        heard: dict[str, int] = {}
        self.files.upload_tree(source, self.remote, on_file=heard.__setitem__)
        self.assertEqual((len(heard), heard[f"{self.remote}/large"]), (32, 2_560_000))
        self.assertEqual(self.files.stat(f"{self.remote}/run.sh").mode, 0o755)
        self.assertEqual(self.files.read_link(f"{self.remote}/link"), "grüße/deep/3")
        self.assertFalse(self.files.exists(f"{self.remote}/pipe"))

        target = self.folder / "target"
        heard.clear()
        self.assertEqual(self.files.download_tree(self.remote, target, on_file=heard.__setitem__), ())
        self.assertEqual(len(heard), 32)
        (source / "pipe").unlink()
        self.assertEqual(described(target), described(source))
        # Files and links are replaced, folders stay as they are.
        (source / "large").write_bytes(b"small")
        (source / "grüße").chmod(0o700)
        (source / "run.sh").chmod(0o776)
        self.files.upload_tree(source, self.remote)
        self.files.download_tree(self.remote, target)
        self.assertEqual((target / "large").read_bytes(), b"small")
        self.assertEqual(self.files.stat(f"{self.remote}/run.sh").mode, 0o776)
        self.assertEqual(self.files.stat(f"{self.remote}/grüße").mode & 0o777, 0o755)

    def test_a_single_file_is_a_tree(self) -> None:
        local = self.folder / "one"
        local.write_text("one")
        self.files.upload_tree(str(local), self.remote)
        self.files.download_tree(self.remote, self.folder / "two")
        self.assertEqual((self.folder / "two").read_text(), "one")

    def test_nothing_is_written_outside_of_the_target(self) -> None:
        self.files.mkdir(f"{self.remote}/in")
        for name, target in (("up", "../../x"), ("root", "/etc/passwd"), ("in/fine", "../in")):
            self.files.symlink(target, f"{self.remote}/{name}")
        self.files.write(f"{self.remote}/set", "x")
        self.files.chmod(f"{self.remote}/set", 0o4755)
        target = self.folder / "target"
        skipped = self.files.download_tree(self.remote, target)
        self.assertEqual(sorted(skipped), [f"{self.remote}/root", f"{self.remote}/up"])
        self.assertEqual(os.readlink(target / "in/fine"), "../in")
        self.assertEqual((target / "set").stat().st_mode & 0o7777, 0o755)
        # A link that is already here is not followed.
        outside = self.folder / "outside"
        outside.write_text("mine")
        (target / "set").unlink()
        (target / "set").symlink_to(outside)
        with self.assertRaises(OSError):
            self.files.download_tree(self.remote, target)
        self.assertEqual(outside.read_text(), "mine")
        (self.folder / "folder").mkdir()
        (self.folder / "link").symlink_to("folder")
        with self.assertRaises(FileExistsError):
            self.files.download_tree(self.remote, self.folder / "link")

    def test_names_that_are_not_utf8_are_refused_with_their_path(self) -> None:
        source = self.folder / "source"
        source.mkdir()
        (source / os.fsdecode(b"b\xff")).write_text("")
        with self.assertRaisesRegex(SvcError, f"invalid_request: {source}/b\ufffd: the name is not UTF-8"):
            self.files.upload_tree(source, self.remote)
        self.sandbox.shell(f"mkdir -p {self.remote}; printf x > {self.remote}/$(printf 'b\\377')")
        with self.assertRaisesRegex(SvcError, "invalid_request.*not UTF-8"):
            self.files.download_tree(self.remote, self.folder / "target")

    def test_a_failure_is_raised_as_it_is(self) -> None:
        with self.assertRaises(FileNotFoundError):
            self.files.upload_tree(self.folder / "nowhere", self.remote)
        with self.assertRaisesRegex(SvcError, "not_found"):
            self.files.download_tree("/nowhere", self.folder / "x")
        source = self.folder / "source"
        source.mkdir()
        (source / "a").write_text("a")

        def listen(path: str, size: int) -> None:
            raise KeyError(path)

        with self.assertRaises(KeyError):
            self.files.upload_tree(source, self.remote, on_file=listen)
        with self.assertRaisesRegex(SvcError, "timeout"):
            self.files.download_tree("/usr", self.folder / "usr", timeout_ms=30)

    def test_a_link_opens_one_file_without_a_key(self) -> None:
        self.files.write("/tmp/linked", "hello")
        link = self.files.link("/tmp/linked", expires_in_secs=60)
        with urllib.request.urlopen(link.url) as answer:
            self.assertEqual(answer.read(), b"hello")
        self.assertNotIn(link.url, repr(link))
        put = self.files.link(f"{self.remote}/new", method="PUT", mode=0o640, parents=True)
        self.assertEqual((put.method, put.path), ("PUT", f"{self.remote}/new"))
        urllib.request.urlopen(urllib.request.Request(put.url, b"sent", method="PUT")).close()
        self.assertEqual(self.files.read_text(f"{self.remote}/new"), "sent")
        self.assertEqual(self.files.stat(f"{self.remote}/new").mode, 0o640)
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(put.url)
        caught.exception.close()


class AwaitedTrees(unittest.IsolatedAsyncioTestCase):
    async def test_a_cancelled_copy_ends(self) -> None:
        sandbox = await AsyncSandbox.connect(shared_sandbox().id)
        self.addAsyncCleanup(sandbox.client.close)
        self.addAsyncCleanup(sandbox.close)
        heard = asyncio.Event()

        async def listen(path: str, size: int) -> None:
            heard.set()

        with tempfile.TemporaryDirectory() as folder:
            copying = asyncio.ensure_future(sandbox.files.download_tree("/usr/lib", f"{folder}/lib", on_file=listen))
            await heard.wait()
            copying.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await copying
        self.assertTrue(await sandbox.files.exists("/usr/lib"))


def described(folder: pathlib.Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
    return found
