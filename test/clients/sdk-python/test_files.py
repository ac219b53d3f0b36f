"""Files of a sandbox and of a volume, blocking."""

import hashlib
import tempfile
import unittest
from collections.abc import Iterator

from fixture import ISOLATION, numbered, shared_sandbox

from svc_sdk import Sandbox, SvcError, Volume


class Files(unittest.TestCase):
    def setUp(self) -> None:
        self.sandbox: Sandbox = shared_sandbox()
        self.files = self.sandbox.files

    def test_content_of_any_size_comes_back(self) -> None:
        content = bytes(range(256)) * 20_000
        self.files.write("/tmp/large", content)
        self.assertEqual(digest(self.files.read_stream("/tmp/large")), digest([content]))
        self.files.write("/tmp/lines", numbered(100))
        self.assertEqual(self.files.read_text("/tmp/lines").count("\n"), 100)
        with tempfile.TemporaryFile() as local:
            local.write(b"local")
            local.seek(0)
            self.files.write("/tmp/local", local, mode=0o600)
        self.assertEqual((self.files.read("/tmp/local"), self.files.stat("/tmp/local").mode), (b"local", 0o600))
        with self.assertRaises(SvcError) as caught:
            self.files.read("/tmp/large", max_bytes=1000)
        self.assertEqual(caught.exception.code, "payload_too_large")

    def test_an_atomic_write_leaves_the_old_file_when_its_content_fails(self) -> None:
        self.files.mkdir("/tmp/atomic/deep")
        self.files.write("/tmp/atomic/file", "old", atomic=True)

        def broken() -> Iterator[bytes]:
            yield b"new"
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            self.files.write("/tmp/atomic/file", broken(), atomic=True)
        self.assertEqual(self.files.read_text("/tmp/atomic/file"), "old")
        self.assertEqual([each.name for each in self.files.list("/tmp/atomic")], ["deep", "file"])

    def test_an_atomic_write_keeps_owner_and_mode_of_what_it_replaces(self) -> None:
        self.sandbox.shell("echo old > /tmp/owned; chown 1000:100 /tmp/owned; chmod 4750 /tmp/owned")
        self.files.write("/tmp/owned", "new", atomic=True)
        info = self.files.stat("/tmp/owned")
        self.assertEqual((info.uid, info.gid, info.mode, self.files.read("/tmp/owned")), (1000, 100, 0o4750, b"new"))
        self.files.write("/tmp/owned", "newer", mode=0o600, atomic=True)
        info = self.files.stat("/tmp/owned")
        self.assertEqual((info.uid, info.mode), (1000, 0o600))

    def test_the_tree_is_changed(self) -> None:
        files = self.files
        files.write("/tmp/a", "a")
        files.copy("/tmp/a", "/tmp/b")
        files.rename("/tmp/b", "/tmp/c")
        files.symlink("/tmp/c", "/tmp/link")
        files.chmod("/tmp/c", 0o640)
        self.assertEqual(files.read_link("/tmp/link"), "/tmp/c")
        self.assertEqual(files.stat("/tmp/link").mode, 0o640)
        self.assertEqual(files.stat("/tmp/link", follow_symlink=False).kind, "symlink")
        self.assertEqual((files.exists("/tmp/b"), files.exists("/tmp/c")), (False, True))
        files.mkdir("/tmp/folder")
        files.write("/tmp/folder/inside", "")
        with self.assertRaises(SvcError):
            files.remove("/tmp/folder")
        files.remove("/tmp/folder", recursive=True)
        self.assertFalse(files.exists("/tmp/folder"))

    def test_a_failure_names_the_path_and_the_errno(self) -> None:
        with self.assertRaises(SvcError) as caught:
            self.files.read("/nowhere")
        error = caught.exception
        self.assertEqual((error.code, error.details), ("not_found", {"errno": "ENOENT", "path": "/nowhere"}))

    def test_a_watch_says_what_changed(self) -> None:
        self.files.mkdir("/tmp/site/posts")
        with self.files.watch("/tmp/site", recursive=True) as watch:
            self.sandbox.shell("echo hello > /tmp/site/draft; mv /tmp/site/draft /tmp/site/posts/first")
            seen = []
            for change in watch.changes():
                seen.append((change.type, change.path, change.renamed_from))
                if change.type == "renamed":
                    break
        self.assertEqual(seen[0], ("created", "draft", None))
        self.assertEqual(seen[-1], ("renamed", "posts/first", "draft"))

    def test_a_volume_outlives_its_sandbox(self) -> None:
        volume = Volume.create("models", labels={"kind": "test"})
        volume.files.write("grüße/weights.bin", bytes(1024))
        volume.files.write("pieces", iter([b"a", b"b"]))
        mounts = [{"type": "named", "name": "models", "guest": "/models"}]
        with Sandbox.create(image="python", mounts=mounts, isolation=ISOLATION) as sandbox:
            size = sandbox.exec("stat", ["-c", "%s", "/models/grüße/weights.bin"]).text()
        self.assertEqual((size, volume.files.read_text("pieces")), ("1024\n", "ab"))
        self.assertEqual([each.path for each in volume.files.list("grüße")], ["grüße/weights.bin"])
        volume.files.remove("grüße", recursive=True)
        self.assertFalse(volume.files.exists("grüße"))
        self.assertEqual(Volume.get("models").info.labels, {"kind": "test"})
        volume.remove()
        left = [each.name for each in Volume.list() if each.info.status == "active"]
        self.assertNotIn("models", left)
        with self.assertRaisesRegex(SvcError, "volume_not_found"):
            Volume.get("no-such-volume")


def digest(chunks: Iterator[bytes] | list[bytes]) -> str:
    found = hashlib.sha256()
    for chunk in chunks:
        found.update(chunk)
    return found.hexdigest()
