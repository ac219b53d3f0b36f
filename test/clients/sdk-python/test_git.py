"""Git in a sandbox: repositories in folders, and one that a host inside asks a password for."""

import asyncio
import base64
import unittest

from fixture import ISOLATION

from svc_sdk import AsyncSandbox, GitAuth, GitAuthor, GitFileStatus, Sandbox, SecretOption, SvcError

AUTHOR = GitAuthor("Ada Lovelace", "ada@example.com")
VALUE = "sk-live-4711-real"
BARE = """set -e; git init -q --bare -b main /srv/bare.git; git clone -q /srv/bare.git /srv/first 2> /dev/null
cd /srv/first; git checkout -q -b main; echo one > a.txt; git add a.txt
git -c user.name=x -c user.email=x@example.com commit -q -m first; git push -q origin main
git -C /srv/bare.git update-server-info"""
#: Serves the repository to those that show a password, and says which one they showed.
SERVER = """
import base64, functools, http.server

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        shown = self.headers.get("Authorization")
        if shown is None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        with open("/tmp/shown", "w") as file:
            file.write(shown)
        super().do_GET()

make = functools.partial(Handler, directory="/srv")
http.server.ThreadingHTTPServer(("127.0.0.1", 8090), make).serve_forever()
"""


class Git(unittest.TestCase):
    sandbox: Sandbox

    @classmethod
    def setUpClass(cls) -> None:
        secrets = {"GIT_TOKEN": SecretOption(hosts=["git.example.com"], value=VALUE)}
        cls.sandbox = Sandbox.create(image="python", isolation=ISOLATION, secrets=secrets)
        cls.addClassCleanup(cls.sandbox.remove)
        made = cls.sandbox.shell(BARE)
        assert made.is_success, made.error_text()

    def code_of(self, call: object, *args: object, **options: object) -> SvcError:
        with self.assertRaises(SvcError) as raised:
            call(*args, **options)  # type: ignore[operator]
        return raised.exception

    def test_a_repository_is_cloned_changed_pushed_and_pulled(self) -> None:
        git = self.sandbox.git
        one = git.clone("/srv/bare.git", path="/code/one", branch="main")
        two = git.clone("file:///srv/bare.git", path="/code/two", depth=1)
        self.sandbox.shell("cd /code/one; git mv a.txt ü.txt; echo new > 'with space.txt'")
        status = git.status(one)
        self.assertEqual((status.branch, status.upstream, status.ahead, status.behind), ("main", "origin/main", 0, 0))
        self.assertEqual(
            status.files,
            (
                GitFileStatus("ü.txt", "a.txt", "renamed", "unmodified"),
                GitFileStatus("with space.txt", None, "untracked", "untracked"),
            ),
        )
        git.add(one, ["with space.txt"])
        git.add(one)
        id = git.commit(one, "it's $(touch /tmp/no)", author=AUTHOR)
        self.assertEqual((git.status(one).commit, git.status(one).ahead), (id, 1))
        git.push(one)
        git.pull(two)
        self.assertEqual(git.status(two).commit, id)
        self.assertTrue(git.status(two).is_clean)
        self.assertFalse(self.sandbox.files.exists("/tmp/no"))

    def test_branches_are_made_listed_switched_to_and_deleted(self) -> None:
        git = self.sandbox.git
        path = git.clone("/srv/bare.git", path="/code/branches")
        git.create_branch(path, "feature/search", start="main")
        git.checkout(path, "feature/search")
        id = git.commit(path, "empty", author=AUTHOR, allow_empty=True)
        git.push(path, set_upstream=True)
        found = {each.name: each for each in git.branches(path)}
        self.assertEqual(sorted(found), ["feature/search", "main"])
        mine = found["feature/search"]
        self.assertEqual((mine.commit, mine.upstream, mine.is_current), (id, "origin/feature/search", True))
        git.checkout(path, id)
        self.assertIsNone(git.status(path).branch)
        git.checkout(path, "main")
        git.create_branch(path, "lost", start=id)
        git.delete_branch(path, "lost", force=True)
        self.assertNotIn("lost", [each.name for each in git.branches(path)])

    def test_git_shows_a_placeholder_and_writes_it_nowhere(self) -> None:
        git = self.sandbox.git
        self.sandbox.files.write("/srv/serve.py", SERVER)
        self.sandbox.commands.start_detached("python3", ["/srv/serve.py"])
        self.sandbox.wait_for_port(8090)
        url = "http://127.0.0.1:8090/bare.git"
        refused = self.code_of(git.clone, url, path="/code/none")
        self.assertEqual(refused.code, "git_authentication_failed")
        absent = self.code_of(git.clone, url, path="/code/none", auth=GitAuth("NO_SUCH"))
        self.assertEqual((absent.code, "NO_SUCH" in absent.message), ("invalid_request", True))
        git.clone(url, path="/code/shown", auth=GitAuth("GIT_TOKEN"))
        shown = self.sandbox.files.read_text("/tmp/shown").removeprefix("Basic ")
        self.assertEqual(base64.b64decode(shown).decode(), "x-access-token:$SVC_GIT_TOKEN")
        kept = self.sandbox.shell("grep -rlF GIT_TOKEN /code/shown; true")
        self.assertEqual(kept.text(), "")

    def test_failures_have_codes(self) -> None:
        git = self.sandbox.git
        self.assertEqual(self.code_of(git.status, "/etc").code, "not_a_repository")
        self.assertEqual(self.code_of(git.clone, "/srv/no.git", path="/x").code, "not_a_repository")
        path = git.clone("/srv/bare.git", path="/code/author")
        anonymous = self.code_of(git.commit, path, "x", allow_empty=True)
        self.assertEqual((anonymous.details or {})["field"], "author")
        nothing = self.code_of(git.commit, path, "x", author=AUTHOR)
        self.assertEqual(nothing.code, "git_failed")
        self.assertIn("nothing to commit", nothing.message)
        self.assertTrue(self.sandbox.exec("mv", ["/usr/bin/git", "/usr/bin/moved"]).is_success)
        try:
            missing = self.code_of(git.status, path)
        finally:
            self.sandbox.exec("mv", ["/usr/bin/moved", "/usr/bin/git"])
        self.assertEqual(missing.code, "git_missing")
        self.assertIn("image 'python'", missing.message)

    def test_nothing_gets_in_by_a_name_or_an_address(self) -> None:
        git = self.sandbox.git
        path = git.clone("/srv/bare.git", path="/code/-hostile")
        refusals = [
            ("url", git.clone, ["--upload-pack=x"], {}),
            ("url", git.clone, [f"https://me:{VALUE}@git.example.com/x.git"], {}),
            ("depth", git.clone, ["/srv/bare.git"], {"depth": 0}),
            ("ref", git.checkout, [path, "--orphan"], {}),
            ("name", git.create_branch, [path, "-D"], {}),
            ("start", git.create_branch, [path, "x"], {"start": "--force"}),
            ("name", git.delete_branch, [path, "a b"], {}),
            ("remote", git.push, [path], {"remote": "ext::sh -c x"}),
            ("branch", git.push, [path], {"branch": ":main"}),
            ("remote", git.pull, [path], {"remote": "--upload-pack=x"}),
            ("auth.secret", git.pull, [path], {"auth": GitAuth('A"; touch /tmp/no; "')}),
            ("auth.username", git.pull, [path], {"auth": GitAuth("GIT_TOKEN", "a\npassword=b")}),
            ("files", git.add, [path, "a.txt"], {}),
        ]
        for field, call, args, options in refusals:
            error = self.code_of(call, *args, **options)
            self.assertEqual((error.code, (error.details or {}).get("field")), ("invalid_request", field))
            self.assertNotIn(VALUE, error.message)
        self.sandbox.files.write(f"{path}/--force", "x")
        git.add(path, ["--force"])
        self.assertEqual([(each.path, each.index) for each in git.status(path).files], [("--force", "added")])
        self.assertFalse(self.sandbox.files.exists("/tmp/no"))

    def test_calls_are_awaited_too(self) -> None:
        async def branches_of() -> list[str]:
            sandbox = await AsyncSandbox.connect(self.sandbox.id)
            try:
                path = await sandbox.git.clone("/srv/bare.git", path="/code/awaited")
                return [each.name for each in await sandbox.git.branches(path)]
            finally:
                await sandbox.close()
                await sandbox.client.close()

        self.assertEqual(asyncio.run(branches_of()), ["main"])
