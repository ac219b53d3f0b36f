# Sourced by the other scripts: where the checkout is, how they print, and how they get the rights they need.
# shellcheck shell=bash

ROOT=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
SUDO=''
[ "$EUID" -eq 0 ] || SUDO='sudo '

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
  BOLD=$'\e[1m' DIM=$'\e[2m' RED=$'\e[31m' GREEN=$'\e[32m' PLAIN=$'\e[0m'
else
  BOLD='' DIM='' RED='' GREEN='' PLAIN=''
fi

heading() { printf '%s%s%s\n' "$BOLD" "$1" "$PLAIN"; }
step_begins() { printf '  %s…%s %-20s %s\n' "$DIM" "$PLAIN" "$1" "$2"; }
step_done() { printf '  %s✓%s %-20s %s\n' "$GREEN" "$PLAIN" "$1" "$2"; }
note() { printf '    %s%s%s\n' "$DIM" "$1" "$PLAIN"; }

# What went wrong, and what to do about it.
fail() {
  printf '%serror%s: %s\n  %s\n' "$RED" "$PLAIN" "$1" "$2" >&2
  exit 1
}

need_root_rights() {
  [ "$EUID" -eq 0 ] && return
  command -v sudo >/dev/null || fail 'sandboxes need root, and sudo is not installed' 'become root (su -) and run this again'
  # Nobody answers a password prompt in CI.
  if [ "${CI:-}" = true ]; then
    sudo -n true || fail 'sudo asks for a password, which nobody can type here' 'run this as root, or allow sudo without a password'
  else
    sudo -v || fail 'sudo was refused' 'run this as root, or ask for the right to use sudo'
  fi
}

as_root() {
  # SAFETY: callers pass fixed programs and package names from this repository, never what a sandbox or a network peer sent.
  if [ "$EUID" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Files of the checkout belong to whoever cloned it, also under `sudo make`.
as_owner() {
  if [ "$EUID" -eq 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$(stat -c %U "$ROOT")" = "$SUDO_USER" ] && [ "$SUDO_USER" != root ]; then
    sudo -u "$SUDO_USER" -- "$@"
  else
    "$@"
  fi
}
