"""Files as a user reads and writes them, and the folder of the workspace."""

ABSENT = 72

READ = f"""
[ -e "$1" ] || exit {ABSENT}
exec cat < "$1"
"""
WRITE = """
mkdir -p -- "${1%/*}/" || exit
exec cat > "$1"
"""
#: Says who the user is when only root can make the folder.
MAKE_ROOT = 'mkdir -p -- "$1" 2> /dev/null && [ -w "$1" ] || id -u'
GIVE_ROOT = 'mkdir -p -- "$2" && chown -- "$1" "$2"'
ROOT = "0"
