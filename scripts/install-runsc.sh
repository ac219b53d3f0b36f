#!/usr/bin/env bash
# Installs gVisor's runsc at /opt/svc/bin/runsc. The system itself stays as it is.
# SVC_RUNSC_FROM says from where:
#   debian  Debian 13's build, of July 2024, checked by apt against Debian's signature (default). Debian 12's own is too old:
#           coreutils 9 fail under it.
#   source  built from gVisor's Go module in the version of gvisor/go.mod, checked against gvisor/go.sum
#   a path  a file of the operator
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
# shellcheck source=scripts/debian-suite.sh
source "$ROOT/scripts/debian-suite.sh"

TARGET=/opt/svc/bin/runsc
SUITE=trixie

main() {
  local from=${SVC_RUNSC_FROM:-debian}
  case $from in
    debian | source | /*) ;;
    *) fail "SVC_RUNSC_FROM is $from" 'give debian, source or the absolute path of a runsc' ;;
  esac
  if [ -x "$TARGET" ] && [ "${1:-}" != --force ]; then
    step_done 'runsc' "present ($TARGET)"
    return
  fi
  if [ "$from" = debian ] && was_missed runsc && [ "${1:-}" != --force ]; then
    step_done 'runsc' 'none: it was not to be had within the last day (to try now: make runsc)'
    return
  fi
  need_root_rights
  local folder
  folder=$(mktemp -d)
  # SAFETY: the name is mktemp's.
  # shellcheck disable=SC2064 # The folder of now.
  trap "as_root rm -rf '$folder'" EXIT
  case $from in
    debian) take_from_debian "$folder" ;;
    source) build "$folder" ;;
    *) take_file "$from" ;;
  esac
}

take_from_debian() {
  step_begins 'runsc' "fetching Debian $SUITE's build"
  if unpack_from_suite "$SUITE" "$1" runsc; then
    install_file "$1/content/usr/bin/runsc"
  else
    fall_back
  fi
}

take_file() {
  "$1" --version 2>/dev/null | grep -q '^runsc version' ||
    fail "$1 is no runsc: it does not print its version" 'name a runsc that runs on this machine'
  install_file "$1"
}

# Some three minutes of processor time on amd64, and 1 GiB of disk until it is built.
build() {
  local version
  version=$(sed -nE 's#^\tgvisor.dev/gvisor v0\.0\.0-([0-9]{8}).*#\1#p' "$ROOT/scripts/gvisor/go.mod")
  find_go "$1" || fail 'no Go to build gVisor with' 'install Go 1.21 or newer, or make Debian reachable, and run this again'
  step_begins 'runsc' "building gVisor of $version with $("$GO" version | cut -d ' ' -f 3), some minutes"
  # An older Go fetches the one that go.mod asks for, by the same checksums. Modules can be removed again.
  (
    cd "$ROOT/scripts/gvisor"
    GOTOOLCHAIN=auto GOFLAGS='-mod=readonly -modcacherw -buildvcs=false' GOPATH=$1/go GOCACHE=$1/cache CGO_ENABLED=0 \
      nice "$GO" build -trimpath -ldflags "-s -w -X gvisor.dev/gvisor/runsc/version.version=release-$version" \
      -o "$1/runsc" gvisor.dev/gvisor/runsc
  ) || fail 'gVisor could not be built' 'read the lines above: is there a Go module proxy (GOPROXY), and 1 GiB of disk?'
  take_file "$1/runsc"
}

# Sets GO to that of this machine, else to Debian's, unpacked.
find_go() {
  for GO in "$(command -v go)" /usr/local/go/bin/go; do
    [ -x "$GO" ] && "$GO" version | grep -qE 'go1\.(2[1-9]|[3-9][0-9])' && return
  done
  step_begins 'runsc' "fetching Debian $SUITE's Go"
  unpack_from_suite "$SUITE" "$1" golang-1.24-go golang-1.24-src || return 1
  GO=$1/content/usr/lib/go-1.24/bin/go
}

install_file() {
  as_root install -d -m 755 "$(dirname "$TARGET")"
  # Renamed into place, so that an engine that starts a sandbox now finds the old or the new file, never half of one.
  as_root install -m 755 "$1" "$TARGET.new"
  as_root mv -f "$TARGET.new" "$TARGET"
  forget_miss runsc
  step_done 'runsc' "$("$TARGET" --version | head -n 1)"
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
