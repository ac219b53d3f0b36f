"""Reading and writing a file as the user of the sandbox."""

from __future__ import annotations

from svc_sdk import ExecResult

#: Their own exit codes say why a file was refused; others come from the programs.
READ = """
[ -d "$1" ] && exit 73
[ -e "$1" ] || exit 72
[ -r "$1" ] || exit 77
exec cat < "$1"
"""
WRITE = """
[ -d "$1" ] && exit 73
mkdir -p -- "${1%/*}/" || exit 77
if [ -e "$1" ]; then [ -w "$1" ]; else [ -w "${1%/*}/" ]; fi || exit 77
exec cat > "$1"
"""
_ERRORS = {72: "file_not_found", 73: "is_directory", 77: "permission_denied"}


def explain(ended: ExecResult) -> str | None:
    """Why it failed, as deepagents names it."""
    if ended.is_success:
        return None
    return _ERRORS.get(ended.code, ended.error_text().strip() or f"it ended with {ended.code}")
