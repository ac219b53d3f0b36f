#!/usr/bin/env bash
# Runs a program of this checkout as root: tests and benchmarks start real sandboxes. With sudo for other users.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
cd "$ROOT"

need_root_rights
# sudo starts with an empty environment; these say how to run and how to print.
as_root env ${CI:+"CI=$CI"} ${NO_COLOR:+"NO_COLOR=$NO_COLOR"} ${SVC_TEST_NEWER_LIBC:+"SVC_TEST_NEWER_LIBC=$SVC_TEST_NEWER_LIBC"} "$@"
