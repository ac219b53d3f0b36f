#!/usr/bin/env bash
# Installs a runc that has the fixes of November 2025 at /opt/svc/bin/runc where this system's own lacks them: Debian 14's build, checked
# by apt against Debian's signature. It needs a newer C library than Debian 12 has, which lies beside it and which nothing else uses.
# The system itself stays as it is.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
# shellcheck source=scripts/debian-suite.sh
source "$ROOT/scripts/debian-suite.sh"

LINK=/opt/svc/bin/runc
FOLDER=/opt/svc/lib/runc
SUITE=forky
LIBRARIES=(libc6 libseccomp2)
# The first without CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881; see packages/engine/src/runtime/advisories.ts.
FIXED=1.3.3

main() {
  if [ "${1:-}" != --force ]; then
    if [ -x "$LINK" ]; then
      step_done 'runc' "present ($LINK)"
      return
    fi
    if is_fixed /usr/sbin/runc; then
      step_done 'runc' "this system's own ($(version_of /usr/sbin/runc))"
      return
    fi
    if was_missed runc; then
      step_done 'runc' "this system's own; Debian $SUITE's build was not to be had within the last day (to try now: make runc)"
      return
    fi
  fi
  need_root_rights
  step_begins 'runc' "fetching Debian $SUITE's build"
  local folder
  folder=$(mktemp -d)
  # SAFETY: the name is mktemp's.
  # shellcheck disable=SC2064 # The folder of now.
  trap "as_root rm -rf '$folder'" EXIT
  if unpack_from_suite "$SUITE" "$folder" runc "${LIBRARIES[@]}" && install_files "$folder/content"; then
    forget_miss runc
    step_done 'runc' "$("$LINK" --version | head -n 1)"
  else
    note_miss runc
    note "no runc of Debian $SUITE: taking this system's own, which lacks fixes (svc doctor says which); try again with: make runc"
  fi
}

# One folder for each version: an engine that starts a sandbox now finds the old or the new program, never a mix of them.
install_files() {
  local content=$1 program=$1/usr/sbin/runc target version interpreter name
  version=$(dpkg-deb -f "$1"/../download/runc_*.deb Version) || return 1
  target=$FOLDER/$version
  interpreter=$(patchelf --print-interpreter "$program") || return 1
  as_root install -d -m 755 "$FOLDER" "${LINK%/*}"
  as_root rm -rf "$target.new"
  as_root install -d -m 755 "$target.new"
  for name in "${interpreter##*/}" $(patchelf --print-needed "$program"); do
    as_root install -p -m 755 "$(find "$content/usr/lib" -name "$name" -print -quit)" "$target.new/$name" || return 1
  done
  as_root install -m 755 "$program" "$target.new/runc"
  # runc executes itself anew inside its namespaces, so the file must name its libraries: a wrapper would be lost there.
  as_root patchelf --set-interpreter "$target/${interpreter##*/}" --force-rpath --set-rpath "$target" "$target.new/runc" || return 1
  # Debian gives files the date of their build, which svc doctor shows.
  as_root touch -r "$program" "$target.new/runc"
  as_root rm -rf "$target"
  as_root mv "$target.new" "$target"
  is_fixed "$target/runc" || return 1
  as_root ln -sfn "$target/runc" "$LINK.new"
  as_root mv -fT "$LINK.new" "$LINK"
}

is_fixed() {
  local version
  version=$(version_of "$1")
  [ -n "$version" ] && dpkg --compare-versions "$version" ge "$FIXED"
}

version_of() { "$1" --version 2>/dev/null | sed -n 's/^runc version //p'; }

main "$@"
