#!/usr/bin/env bash
# The shortest way to see it work: a server in the background, an image, Python in a first sandbox. May be repeated.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
cd "$ROOT"

IMAGE=python
RUNS_ALREADY=3

svc() { as_root env ${SVC_HOME:+"SVC_HOME=$SVC_HOME"} ./svc "$@"; }

main() {
  heading 'Server'
  svc server start --dev --detach || [ $? -eq $RUNS_ALREADY ]
  if ! svc image inspect "$IMAGE" >/dev/null 2>&1; then
    heading 'Image (once, from Debian packages)'
    svc image build-demo "$IMAGE"
  fi
  heading 'First sandbox'
  local status
  status=$(svc server status --json)
  SVC_API_KEY=$(key_for "$status") SUDO="$SUDO" node_modules/.bin/node scripts/first-sandbox.ts "$status"
}

# A server started without --dev asks for a key; one of an hour is enough here.
key_for() {
  case $1 in
    *'"authentication_required": false'*) ;;
    *) svc server keygen --expire 1h --json | sed -n 's/.*"token": *"\([^"]*\)".*/\1/p' ;;
  esac
}

main "$@"
