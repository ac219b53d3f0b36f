"""One call of git: its arguments, and why it failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import SvcError
from ..git import GitAuth, GitAuthor
from ..values import ExecResult

_MAX_REASON_LENGTH = 500
_MAX_STDERR_LENGTH = 4096
#: Nothing is asked for, and failures are told apart by git's own English.
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "LANGUAGE": ""}
_USERNAME_VARIABLE = "SVC_GIT_USERNAME"
_AUTHENTICATION = re.compile(
    r"Authentication failed|could not read (?:Username|Password)|Permission denied \("
    r"|Host key verification failed|returned error: 40[13]"
)
_NO_REPOSITORY = re.compile(
    r"not a git repository|fatal: cannot change to '|does not appear to be a git repository"
    r"|fatal: repository '.*' (?:does not exist|not found)"
)
_NO_AUTHOR = re.compile(r"tell me who you are|empty ident name|no email was given", re.IGNORECASE)
_NO_NAME = re.compile(r"[\0-\x20\x7f~^:?*[\\]|\.\.|@\{|^\+|^HEAD\Z|^@\Z")


@dataclass(frozen=True)
class GitCall:
    command: str
    #: Where the repository is; None for a clone.
    path: str | None
    args: Sequence[str]
    #: Options of git itself, before the command.
    settings: Sequence[str] = ()
    auth: GitAuth | None = None


def credentials_of(auth: GitAuth | None) -> tuple[list[str], dict[str, str]]:
    """Options of git, and the environment of the call.

    SAFETY: git asks this helper only after a host has answered 401, and keeps nothing of it. What the
    variable holds is read inside, so the placeholder is in no argument and in no file.
    """
    if auth is None:
        return [], dict(_ENVIRONMENT)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", auth.secret):
        raise refuse("auth.secret", "is the name of a variable: letters, digits and _")
    if not re.fullmatch(r"[^\0\r\n]+", auth.username):
        raise refuse("auth.username", "is one line of text")
    ask = f'test -n "${auth.secret}" || {{ echo quit=1; exit 0; }}'
    tell = f'printf \'username=%s\\npassword=%s\\n\' "${_USERNAME_VARIABLE}" "${auth.secret}"'
    helper = f'!f() {{ test "$1" = get || exit 0; {ask}; {tell}; }}; f'
    # The empty one forgets helpers that would keep what they are told.
    settings = ["-c", "credential.helper=", "-c", f"credential.helper={helper}"]
    return settings, {**_ENVIRONMENT, _USERNAME_VARIABLE: auth.username}


def identity_of(author: GitAuthor | None) -> list[str]:
    if author is None:
        return []
    name = require_text("author.name", author.name)
    return ["-c", f"user.name={name}", "-c", f"user.email={require_text('author.email', author.email)}"]


def explain_missing(error: SvcError, image: object) -> SvcError:
    if error.code != "exec_failed" or (error.details or {}).get("kind") != "not_found":
        return error
    place = f"the image '{image}'" if isinstance(image, str) else "what the sandbox was made from"
    said = (
        f"git is not in {place}: install it there with 'apt-get install -y git' or 'apk add git', "
        "or use an image that has it, such as svc/python"
    )
    return SvcError("git_missing", said, details=error.details)


def explain_failure(call: GitCall, result: ExecResult) -> SvcError:
    said = result.error_text()
    details: dict[str, object] = {
        "command": call.command,
        "exit_code": result.code,
        "stderr": said[:_MAX_STDERR_LENGTH],
    }
    if call.auth is not None and "told us to quit" in said:
        message = (
            f"The sandbox has no secret '{call.auth.secret}': name it in secrets of "
            "Sandbox.create or of network.update"
        )
        return SvcError("invalid_request", message, details={**details, "field": "auth.secret"})
    if _NO_AUTHOR.search(said):
        message = "git knows no author: give author=GitAuthor(name, email)"
        return SvcError("invalid_request", message, details={**details, "field": "author"})
    text = f"git {call.command}: {_reason(result)}"
    if _AUTHENTICATION.search(said):
        remedy = "give auth=GitAuth(secret) with a secret of the sandbox that is for this host"
        if call.auth is not None:
            remedy = f"check the value of the secret '{call.auth.secret}' and its hosts"
        return SvcError("git_authentication_failed", f"{text}; {remedy}", details=details)
    code = "not_a_repository" if _NO_REPOSITORY.search(said) else "git_failed"
    return SvcError(code, text, details=details)


def _reason(result: ExecResult) -> str:
    """The line that says why."""
    lines = [
        line.strip()
        for line in f"{result.text()}\n{result.error_text()}".split("\n")
        if line.strip()
    ]
    telling = [line for line in lines if re.match(r"(?:fatal|error|remote: error):", line)]
    if lines:
        return (telling or lines[-1:])[0][:_MAX_REASON_LENGTH]
    return f"exit code {result.code}" if result.signal is None else f"ended by signal {result.signal}"


def require_text(field: str, value: str) -> str:
    if not isinstance(value, str) or value == "" or "\0" in value:
        raise refuse(field, "is a text that is not empty, without NUL characters")
    return value


def require_revision(field: str, value: str) -> str:
    """SAFETY: git would take what begins with a hyphen for an option, also where it knows no `--`."""
    if require_text(field, value).startswith("-"):
        raise refuse(field, "does not begin with '-'")
    return value


def require_name(field: str, value: str) -> str:
    """A branch or a remote: no revision, no pattern and no pair with a colon."""
    if _NO_NAME.search(require_revision(field, value)):
        raise refuse(field, "is a plain name, such as main or feature/search")
    return value


def require_url(url: str) -> str:
    """Git would write credentials that are in it into the repository's settings."""
    require_revision("url", url)
    if re.match(r"https?://[^/?#]*@", url, re.IGNORECASE):
        said = "holds no credentials: git would keep them in .git/config; give auth=GitAuth(secret)"
        raise refuse("url", said)
    return url


def folder_of(url: str) -> str:
    """As git names the folder of a clone."""
    return re.split(r"[/:]", re.sub(r"/?\.git$", "", url.rstrip("/")))[-1]


def refuse(field: str, rule: str) -> SvcError:
    return SvcError("invalid_request", f"{field} {rule}", details={"field": field})
