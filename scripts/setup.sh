#!/usr/bin/env bash
# Makes this checkout ready to use: Debian packages, runsc, npm packages, the two C programs. Installs only what is missing,
# so it can be repeated and interrupted at any point. As root, or as a user who may use sudo.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/terminal.sh"
cd "$ROOT"

# What the product needs to run, and to build its two C programs.
PACKAGES=(
  runc nftables iproute2 tini skopeo bubblewrap mmdebstrap busybox-static e2fsprogs mount tar zstd ca-certificates passwd
  qemu-utils
  gcc libc6-dev libseccomp-dev make
)
# What only the tests and benchmarks need.
TEST_PACKAGES=(docker-registry crun postgresql python3 procps util-linux openssh-client openssh-server bsdutils tmux zsh fish chromium)

main() {
  local for_tests=no
  [ "${1:-}" = --for-tests ] && for_tests=yes
  heading 'Set-up'
  need_root_rights
  install_debian_packages "$for_tests"
  make_service_user
  scripts/install-runsc.sh
  install_npm_packages
  [ "$for_tests" = yes ] && install_test_clients
  build_programs
  as_root ./svc doctor --compact
}

install_debian_packages() {
  local wanted=("${PACKAGES[@]}") missing=()
  [ "$1" = yes ] && wanted+=("${TEST_PACKAGES[@]}")
  command -v npm >/dev/null || wanted+=(nodejs npm)
  command -v apt-get >/dev/null || fail 'this set-up needs Debian 12 or newer (apt-get was not found)' \
    "on another system install these by hand, then run \`npm ci && make build\`: ${wanted[*]}"

  mapfile -t missing < <(missing_packages "${wanted[@]}")
  if [ ${#missing[@]} -eq 0 ]; then
    step_done 'Debian packages' "all ${#wanted[@]} present"
    return
  fi
  step_begins 'Debian packages' "installing ${missing[*]}"
  # A source of the machine's own that cannot be reached does no harm when Debian's can.
  as_root apt-get -q update || note 'some package lists could not be renewed; going on with those that are there'
  keep_registry_from_starting "${missing[@]}"
  keep_database_from_starting "${missing[@]}"
  keep_ssh_from_starting "${missing[@]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" ||
    fail 'Debian packages could not be installed' "read the lines above; try: ${SUDO}apt-get install ${missing[*]}"
  [ -n "$(trap -p EXIT)" ] && { as_root rm -f /usr/sbin/policy-rc.d && trap - EXIT; }
  step_done 'Debian packages' "installed ${missing[*]}"
}

missing_packages() {
  local present
  # dpkg-query fails when one name is unknown, and still prints the others.
  present=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  local name
  for name in "$@"; do
    grep -qx "$name installed" <<<"$present" || printf '%s\n' "$name"
  done
}

# The registry serves the tests, which start their own; Debian's package would start one for the whole network.
keep_registry_from_starting() {
  case " $* " in
    *' docker-registry '*)
      [ -d /etc/systemd/system ] && as_root ln -sfn /dev/null /etc/systemd/system/docker-registry.service
      note 'docker-registry is for tests only: its system service stays masked'
      ;;
  esac
}

# The same for PostgreSQL: the tests make databases of their own.
keep_database_from_starting() {
  case " $* " in
    *' postgresql '*)
      local settings=/etc/postgresql-common/createcluster.conf
      [ -e "$settings" ] || { as_root mkdir -p "${settings%/*}" && echo 'create_main_cluster = false' | as_root tee "$settings" >/dev/null; }
      note 'postgresql is for tests only: no database is made or started'
      ;;
  esac
}

# The same for OpenSSH's server, which a benchmark starts by itself on a loopback port: nobody asked for logins to this machine.
keep_ssh_from_starting() {
  case " $* " in
    *' openssh-server '*)
      if [ -d /etc/systemd/system ]; then
        as_root ln -sfn /dev/null /etc/systemd/system/ssh.service
        as_root ln -sfn /dev/null /etc/systemd/system/ssh.socket
      fi
      # Without systemd a package asks this program, which says no for as long as the installation lasts.
      if [ ! -e /usr/sbin/policy-rc.d ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee /usr/sbin/policy-rc.d >/dev/null
        as_root chmod 755 /usr/sbin/policy-rc.d
        trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
      fi
      note 'openssh-server is for a benchmark only: its system service stays masked'
      ;;
  esac
}

# Whom the web-facing server becomes: a user who owns nothing and cannot log in.
make_service_user() {
  if getent passwd svc >/dev/null; then
    step_done 'user svc' 'present'
    return
  fi
  as_root useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin svc
  step_done 'user svc' 'made: the server runs as this user'
}

install_npm_packages() {
  local stamp=node_modules/.svc-installed wanted
  wanted=$(sha256sum package-lock.json)
  if [ -x node_modules/.bin/node ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    step_done 'npm packages' 'in step with package-lock.json'
    return
  fi
  step_begins 'npm packages' 'installing what package-lock.json says (Node 24 comes with them, about 130 MB)'
  # Not `npm ci`: it refuses a lock file whose optional packages for other platforms the registry in use does not have,
  # and it deletes node_modules under an engine that runs from it. Versions and hashes are those of the lock file either way.
  as_owner npm install --no-save --no-progress --loglevel=error ||
    fail 'npm packages could not be installed' 'read the lines above; behind a proxy set npm config proxy, then run make setup again'
  [ -x node_modules/.bin/node ] || fail 'npm installed no Node 24' 'remove node_modules and run make setup again'
  # Written last: a set-up that was interrupted before this line installs again.
  printf '%s\n' "$wanted" | as_owner tee "$stamp" >/dev/null
  step_done 'npm packages' "installed, Node $(node_modules/.bin/node --version)"
}

# What tests run against our server or our client: the published client of the reference product, the oldest Node that our client
# supports, a driver for the browser. In folders of their own: nothing of it is ours.
install_test_clients() {
  local folder
  for folder in test/interop test/clients; do
    install_apart "$folder"
  done
}

install_apart() {
  local folder=$1 stamp=$1/node_modules/.svc-installed wanted
  wanted=$(sha256sum "$folder/package-lock.json")
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    step_done "$folder" 'in step with its package-lock.json'
    return
  fi
  (cd "$folder" && as_owner npm install --no-save --no-progress --loglevel=error) ||
    fail "what $folder needs could not be installed" "read the lines above; try: cd $folder && npm install"
  printf '%s\n' "$wanted" | as_owner tee "$stamp" >/dev/null
  step_done "$folder" 'installed, for tests'
}

build_programs() {
  local program
  for program in init host; do
    as_owner make --no-print-directory -s -C "packages/$program" ||
      fail "svc-$program could not be built" "read the compiler's lines above; try: make -C packages/$program"
  done
  step_done 'svc-init, svc-host' 'built'
}

main "$@"
