#!/usr/bin/env bash
# Unpacks Docker and Podman, Debian's own builds, to /opt/svc/lib/peers for `make bench-peers`. Nothing is installed: no service, no group,
# no rule of a firewall; the system itself stays as it is.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"

FOLDER=/opt/svc/lib/peers
PACKAGES=(docker.io containerd podman conmon netavark libsubid4)

main() {
  if [ -x "$FOLDER/usr/sbin/dockerd" ] && [ -x "$FOLDER/usr/bin/podman" ]; then
    step_done 'Docker and Podman' "present ($FOLDER)"
    return
  fi
  need_root_rights
  command -v iptables >/dev/null || fail 'Docker needs iptables' "install it first: ${SUDO}apt-get install iptables"
  step_begins 'Docker and Podman' "fetching ${PACKAGES[*]}"
  local folder package
  folder=$(mktemp -d)
  # SAFETY: the name is mktemp's.
  # shellcheck disable=SC2064 # The folder of now.
  trap "as_root rm -rf '$folder'" EXIT
  # apt checks what it downloads against Debian's signature.
  (cd "$folder" && as_root apt-get -q -o APT::Sandbox::User=root download "${PACKAGES[@]}") >/dev/null ||
    fail 'the packages cannot be fetched' "renew the lists: ${SUDO}apt-get update"
  for package in "$folder"/*.deb; do as_root dpkg-deb -x "$package" "$folder/content"; done
  as_root mkdir -p "$(dirname "$FOLDER")"
  as_root rm -rf "$FOLDER"
  as_root mv "$folder/content" "$FOLDER"
  as_root chmod 755 "$FOLDER"
  step_done 'Docker and Podman' "$FOLDER"
}

main "$@"
