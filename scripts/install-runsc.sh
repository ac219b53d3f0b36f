#!/usr/bin/env bash
# Installs gVisor's runsc at /opt/svc/bin/runsc: Debian 13's build, the one file of it, checked by apt against Debian's signature.
# The system itself stays as it is. Debian 12's own runsc is too old: coreutils 9 fail under it.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
# shellcheck source=scripts/debian-suite.sh
source "$ROOT/scripts/debian-suite.sh"

TARGET=/opt/svc/bin/runsc
SUITE=trixie

main() {
  if [ -x "$TARGET" ] && [ "${1:-}" != --force ]; then
    step_done 'runsc' "present ($TARGET)"
    return
  fi
  if was_missed runsc && [ "${1:-}" != --force ]; then
    step_done 'runsc' 'none: it was not to be had within the last day (to try now: make runsc)'
    return
  fi
  need_root_rights
  step_begins 'runsc' "fetching Debian $SUITE's build"
  local folder
  folder=$(mktemp -d)
  # SAFETY: the name is mktemp's.
  # shellcheck disable=SC2064 # The folder of now.
  trap "as_root rm -rf '$folder'" EXIT
  if unpack_from_suite "$SUITE" "$folder" runsc; then
    install_file "$folder/content/usr/bin/runsc"
    forget_miss runsc
    step_done 'runsc' "$("$TARGET" --version | head -n 1)"
  else
    fall_back
  fi
}

install_file() {
  as_root install -d -m 755 "$(dirname "$TARGET")"
  # Renamed into place, so that an engine that starts a sandbox now finds the old or the new file, never half of one.
  as_root install -m 755 "$1" "$TARGET.new"
  as_root mv -f "$TARGET.new" "$TARGET"
}

fall_back() {
  note "Debian $SUITE could not be reached: taking this system's own runsc, which may be too old for newer images"
  if as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends runsc; then
    as_root install -d -m 755 "$(dirname "$TARGET")"
    as_root ln -sfn /usr/bin/runsc "$TARGET"
    step_done 'runsc' "this system's own; get the newer build later with: make runsc"
  else
    note_miss runsc
    note 'no runsc: class gvisor will be missing, class container works; try again with: make runsc'
  fi
}

main "$@"
