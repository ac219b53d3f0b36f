#!/usr/bin/env bash
# Installs Debian 13's C library, and what goes with it, below /opt/svc/lib/debian-13 for the tests: the reference product's client
# for arm64 is linked against it. Nothing of the system, nor of svc, uses it. See test/interop/newer-libc.ts.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
# shellcheck source=scripts/debian-suite.sh
source "$ROOT/scripts/debian-suite.sh"

TARGET=/opt/svc/lib/debian-13
SUITE=trixie
PACKAGES=(libc6 libgcc-s1 libstdc++6 libcap-ng0)

main() {
  if [ -d "$TARGET" ]; then
    step_done 'newer libc' "present ($TARGET)"
    return
  fi
  need_root_rights
  local folder
  folder=$(mktemp -d)
  # SAFETY: the name is mktemp's.
  # shellcheck disable=SC2064 # The folder of now.
  trap "as_root rm -rf '$folder'" EXIT
  unpack_from_suite "$SUITE" "$folder" "${PACKAGES[@]}" ||
    fail "the C library of Debian $SUITE could not be fetched, which the reference client needs" \
      'check that the Debian mirror in /etc/apt can be reached, then run this again'
  as_root install -d -m 755 "${TARGET%/*}"
  as_root rm -rf "$TARGET.new"
  as_root cp -r --no-preserve=ownership "$folder/content" "$TARGET.new"
  # Renamed into place: half a folder is never taken for a whole one.
  as_root mv "$TARGET.new" "$TARGET"
  step_done 'newer libc' "Debian $SUITE's, for a client of the tests ($TARGET)"
}

main "$@"
