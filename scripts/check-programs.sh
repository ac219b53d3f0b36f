#!/usr/bin/env bash
# Compiles every C program for both architectures, those of the tests too: what one machine builds must build on the other kind.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
# shellcheck source=scripts/debian-packages.sh
source "$ROOT/scripts/debian-packages.sh"
cd "$ROOT"

main() {
  command -v "${OTHER_COMPILER}gcc" >/dev/null ||
    fail "${OTHER_COMPILER}gcc is missing: the C programs are checked for the other architecture too" \
      "run scripts/setup.sh --for-tests, or: ${SUDO}apt-get install --no-install-recommends ${OTHER_COMPILER_PACKAGES[*]}"
  compile ''
  compile "$OTHER_COMPILER"
}

compile() {
  local cross=$1 program
  for program in init host; do
    # Tests may be building the same.
    flock "packages/$program" make --no-print-directory -s -C "packages/$program" "CROSS=$cross"
  done
  make --no-print-directory -s -C packages/init "CROSS=$cross" compile-tests
  for program in test/*/*.c bench/*/*.c; do "${cross}gcc" -O1 -Wall -Wextra -Werror -c -o /dev/null "$program"; done
}

main "$@"
