# Sourced by setup.sh: which Debian packages are needed, and how those that are missing get installed.
# shellcheck shell=bash

# What the product needs to run, to build its two C programs, and to try it by hand. libnss-myhostname lets programs other than
# browsers find names below localhost, where previews of a local server are. Debian has the keyring; Ubuntu's apt checks runsc with it.
PACKAGES=(
  crun runc nftables conntrack iproute2 tini skopeo bubblewrap mmdebstrap busybox-static e2fsprogs mount tar zstd ca-certificates passwd
  qemu-utils patchelf
  libnss-myhostname
  debian-archive-keyring
  gcc libc6-dev libseccomp-dev make
  curl
)
# What only the tests and benchmarks need; `make check` the compiler for the other architecture and the formatter of C, in the
# one version that Debian 12 and 13 both have: others lay out a few places differently.
C_FORMATTER=clang-format-19
TEST_PACKAGES=(docker-registry postgresql python3 python3-pip python3-venv python3-requests git procps util-linux openssh-client openssh-server bsdutils tmux zsh fish chromium systemd "$C_FORMATTER")
case $(uname -m) in
  aarch64) OTHER_COMPILER=x86_64-linux-gnu- OTHER_COMPILER_PACKAGES=(gcc-x86-64-linux-gnu libc6-dev-amd64-cross) ;;
  *) OTHER_COMPILER=aarch64-linux-gnu- OTHER_COMPILER_PACKAGES=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross) ;;
esac
TEST_PACKAGES+=("${OTHER_COMPILER_PACKAGES[@]}")

POLICY=/usr/sbin/policy-rc.d
POLICY_MARK='# written by the set-up of svc for as long as it installs packages'
# Machines that were just started often install their own upgrades first.
LOCK_TIMEOUT_S=300

install_debian_packages() {
  local wanted=("${PACKAGES[@]}") missing=()
  [ "$1" = yes ] && wanted+=("${TEST_PACKAGES[@]}")
  # Debian's Node starts npm, which then brings the Node that everything runs with.
  command -v node >/dev/null || wanted+=(nodejs)
  command -v apt-get >/dev/null || fail 'this set-up needs Debian 12 or 13, or Ubuntu 24.04 (apt-get was not found)' \
    "on another system install these by hand, then run \`npm install && make build\`: ${wanted[*]} npm"

  allow_services
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  if [ ${#missing[@]} -eq 0 ]; then
    step_done 'Debian packages' "all ${#wanted[@]} present"
    return
  fi
  step_begins 'Debian packages' "installing ${missing[*]}"
  keep_services_from_starting "${missing[@]}"
  apt_install "${missing[@]}"
  allow_services
  step_done 'Debian packages' "installed ${#missing[@]}, and what they depend on"
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

# What apt and dpkg say goes to a file: a line that counts stays on the screen, and the file's end when something fails.
apt_install() {
  local folder
  # A folder of our own: in the shared one even root must not write to a file of ours.
  folder=$(mktemp -d)
  # shellcheck disable=SC2064 # The folder of now.
  trap "rm -rf '$folder'; allow_services" EXIT
  # SAFETY: the script is constant; names of packages are arguments.
  # `dpkg --configure` and --fix-broken take up an installation that was interrupted. A package list that cannot be renewed, of
  # a source of the machine's own, does no harm when Debian's can.
  as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 sh -c '
    exec 3>&1 >>"$1/log" 2>&1 </dev/null
    options="-q -y -o APT::Status-Fd=3 -o DPkg::Lock::Timeout=$2 -o Acquire::Retries=2"
    shift 2
    dpkg --configure -a
    echo lists >&3
    apt-get $options update
    echo packages >&3
    exec apt-get $options --fix-broken --no-install-recommends -o Dpkg::Options::=--force-confold install "$@"
  ' sh "$folder" $LOCK_TIMEOUT_S "$@" | show_apt_progress || explain_apt_failure "$folder/log" "$@"
  rm -rf "$folder"
  trap allow_services EXIT
}

# apt reports `dlstatus:N:PERCENT:…` while it downloads and `pmstatus:PACKAGE:PERCENT:…` while dpkg works.
show_apt_progress() {
  local kind percent what download=downloading
  while IFS=: read -r kind _ percent _; do
    case $kind in
      lists) download='reading package lists' && continue ;;
      packages) download=downloading && continue ;;
      dlstatus) what=$download ;;
      pmstatus) what=installing ;;
      *) continue ;;
    esac
    step_goes_on 'Debian packages' "$what" "${percent%%.*}"
  done
}

explain_apt_failure() {
  local log=$1 advice
  shift
  advice="run this again; if it fails again, try: ${SUDO}apt-get install --fix-broken $*"
  grep -qE 'Temporary failure resolving|Could not resolve|[Cc]ould not connect|Network is unreachable|Connection timed out|Failed to fetch|Unable to locate package' "$log" &&
    advice='the Debian mirrors in /etc/apt cannot be reached: check the network (behind a proxy: Acquire::http::Proxy), then run this again'
  grep -qE 'No space left on device|enough free space' "$log" &&
    advice='the disk is full: set-up needs about 2 GB (make test 4 GB); free some, then run this again'
  grep -qE 'Could not get lock|Unable to acquire the dpkg' "$log" &&
    advice='another program is installing packages: wait for it, then run this again'
  grep -q 'Operation was interrupted' "$log" && advice='it was interrupted; run this again, it goes on where it stopped'
  printf '%s' "$ANEW" >&2
  # What apt says may hold the password of a mirror. It may also say nothing, when it was killed.
  { grep -E '^(E:|W:|Err:|dpkg: error)|No space left' "$log" || true; } | sort -u | tail -n 5 | sed -E 's#//[^/@ ]*@#//#; s/^/    /' >&2
  fail 'Debian packages could not be installed' "$advice"
}

# The tests start their own registry, database and SSH server on loopback; Debian's packages would start some for the whole network.
keep_services_from_starting() {
  local name unit kept=()
  for name in "$@"; do
    case $name in
      docker-registry) kept+=(docker-registry.service) ;;
      openssh-server) kept+=(ssh.service ssh.socket) ;;
      postgresql) keep_database_from_being_made ;;
    esac
  done
  [ ${#kept[@]} -gt 0 ] || return 0
  if [ -d /etc/systemd/system ]; then
    for unit in "${kept[@]}"; do as_root ln -sfn /dev/null "/etc/systemd/system/$unit"; done
  fi
  note "for tests only, so it stays masked: ${kept[*]}"
  [ -e "$POLICY" ] && return
  # Without systemd a package asks this program, which says no.
  trap allow_services EXIT
  printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_MARK" | as_root tee "$POLICY" >/dev/null
  as_root chmod 755 "$POLICY"
}

keep_database_from_being_made() {
  local settings=/etc/postgresql-common/createcluster.conf
  note 'for tests only, so no database is made or started: postgresql'
  [ -e "$settings" ] && return
  as_root mkdir -p "${settings%/*}"
  echo 'create_main_cluster = false' | as_root tee "$settings" >/dev/null
}

# Also after a set-up that was killed.
allow_services() {
  if grep -qsxF "$POLICY_MARK" "$POLICY"; then as_root rm -f "$POLICY"; fi
}
