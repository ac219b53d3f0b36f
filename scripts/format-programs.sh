#!/usr/bin/env bash
# Lays out the C sources as .clang-format says; with --check only tells which are not.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
# shellcheck source=scripts/debian-packages.sh
source "$ROOT/scripts/debian-packages.sh"
cd "$ROOT"

command -v "$C_FORMATTER" >/dev/null ||
  fail "$C_FORMATTER is missing: the C programs are formatted with it" \
    "run scripts/setup.sh --for-tests, or: ${SUDO}apt-get install --no-install-recommends $C_FORMATTER"
mapfile -t sources < <(find packages/init packages/host test/engine bench -name build -prune -o -name '*.[ch]' -print)
if [ "${1:-}" = --check ]; then
  "$C_FORMATTER" --dry-run --Werror "${sources[@]}" || fail 'some C sources are not formatted' 'run make format'
else
  "$C_FORMATTER" -i "${sources[@]}"
fi
