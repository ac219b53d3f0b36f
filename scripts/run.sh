#!/usr/bin/env bash
# The shortest way to see it work: an engine in the background, an image, Python in a first sandbox. May be repeated.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
cd "$ROOT"

IMAGE=python
CODE='
import os, platform, socket
print("Hello from Python", platform.python_version(), "in sandbox", socket.gethostname())
print("uid", os.getuid(), "- CPUs", os.cpu_count(), "- kernel", platform.release())
print("6 * 7 =", 6 * 7)'

svc() { as_root env ${SVC_HOME:+"SVC_HOME=$SVC_HOME"} ./svc "$@"; }

main() {
  heading 'Engine'
  svc engine start --detach
  if ! svc image inspect "$IMAGE" >/dev/null 2>&1; then
    heading 'Image (once, from Debian packages)'
    svc image build-demo "$IMAGE"
  fi
  heading 'First sandbox'
  local started=${EPOCHREALTIME/[.,]/}
  svc run "$IMAGE" -- python3 -c "$CODE" </dev/null
  local milliseconds=$(((${EPOCHREALTIME/[.,]/} - started) / 1000))
  note "made, run and removed in $milliseconds ms, this command line included"
  heading 'How to go on'
  cat <<END
  ${SUDO}./svc run -it $IMAGE -- sh                 a shell in a sandbox of its own
  ${SUDO}./svc run --name web -d $IMAGE -- python3 -m http.server
                                            a sandbox that stays; then: ${SUDO}./svc ls, ${SUDO}./svc logs web
  ${SUDO}./svc engine stop                         stop the engine (sandboxes run on)
END
}

main "$@"
