"""Reading and writing a file as the user of the sandbox."""

import errno

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
ERRNO_OF_CODE = {72: errno.ENOENT, 73: errno.EISDIR, 77: errno.EACCES}
