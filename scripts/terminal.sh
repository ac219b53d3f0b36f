# Sourced by the other scripts: where the checkout is, how they print, and how they get the rights they need.
# shellcheck shell=bash

ROOT=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
SUDO=''
# A user's PATH, and that of root after a plain `su`, has no sbin; npm is in the last folder when the machine had none.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/opt/svc/bin
[ "$EUID" -eq 0 ] || SUDO='sudo '

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
  BOLD=$'\e[1m' DIM=$'\e[2m' RED=$'\e[31m' GREEN=$'\e[32m' PLAIN=$'\e[0m'
else
  BOLD='' DIM='' RED='' GREEN='' PLAIN=''
fi
# The start of the line anew, and nothing on it: where there is a cursor to move.
ANEW=''
[ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && ANEW=$'\r\e[K'
PROGRESS=''

heading() { printf '%s%s%s\n' "$BOLD" "$1" "$PLAIN"; }
step_begins() { printf '  %s…%s %-20s %s\n' "$DIM" "$PLAIN" "$1" "$2"; }
step_done() { printf '%s  %s✓%s %-20s %s\n' "$ANEW" "$GREEN" "$PLAIN" "$1" "$2"; }
# A line that counts in place; without a terminal one line for every quarter.
step_goes_on() {
  local name=$1 what=$2 percent=$3 line
  [[ $percent =~ ^[0-9]+$ ]] || return 0
  [ -n "$ANEW" ] || percent=$((percent / 25 * 25))
  line="$what $percent %"
  [ "$line" != "$PROGRESS" ] || return 0
  PROGRESS=$line
  if [ -n "$ANEW" ]; then
    printf '%s  %s…%s %-20s %s' "$ANEW" "$DIM" "$PLAIN" "$name" "$line"
  else
    note "$line"
  fi
}
note() { printf '    %s%s%s\n' "$DIM" "$1" "$PLAIN"; }

# What went wrong, and what to do about it.
fail() {
  printf '%s%serror%s: %s\n  %s\n' "$ANEW" "$RED" "$PLAIN" "$1" "$2" >&2
  exit 1
}

need_root_rights() {
  [ "$EUID" -eq 0 ] && return
  command -v sudo >/dev/null || fail 'sandboxes need root, and sudo is not installed' 'become root (su -) and run this again'
  # In CI a password prompt would hang.
  if [ "${CI:-}" = true ]; then
    sudo -n true || fail 'sudo asks for a password, which cannot be typed here' 'run this as root, or allow sudo without a password'
  else
    sudo -v || fail 'sudo was refused' 'run this as root, or ask for the right to use sudo'
  fi
}

as_root() {
  # SAFETY: callers pass fixed programs and package names from this repository, never what a sandbox or a network peer sent.
  if [ "$EUID" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Files of the checkout belong to the user who cloned it, also under `sudo make`.
as_owner() {
  if [ "$EUID" -eq 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$(stat -c %U "$ROOT")" = "$SUDO_USER" ] && [ "$SUDO_USER" != root ]; then
    sudo -u "$SUDO_USER" -- env "PATH=$PATH" "$@"
  else
    "$@"
  fi
}
