#!/usr/bin/env bash
# A Debian 12 with its own kernel, systemd and nothing but cgroup v2, in QEMU by software emulation: for trying svc on a kernel and a
# layout that this machine does not have. Ten to thirty times slower than the machine; no part of `make test`. As root.
#
#   test/hosts/guest.sh start             builds what is missing (node_modules and runsc are copied now), boots, waits until it answers
#   test/hosts/guest.sh sync              copies this checkout, with the built programs, into the guest
#   test/hosts/guest.sh run COMMAND…      runs a shell command in the guest, in the copy of the checkout
#   test/hosts/guest.sh test PATH…        runs test files in the guest, with deadlines for a slow machine
#   test/hosts/guest.sh stop              switches it off
#   test/hosts/guest.sh remove            removes image, kernel and keys
#
# SVC_GUEST is the folder it lives in, SVC_GUEST_KERNEL the package its kernel comes from.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../scripts/terminal.sh"

GUEST=${SVC_GUEST:-/var/tmp/svc-guest}
KERNEL=${SVC_GUEST_KERNEL:-linux-image-amd64}
PORT=${SVC_GUEST_PORT:-5522}
CHECKOUT=/srv/svc
BOOT_SECONDS=600
TEST_TIMEOUT_MS=1200000
DEADLINES='((const [A-Z_]*(TIMEOUT|DEADLINE)_MS|timeoutMs) = |timeout: |timeoutMs: )[1-9][0-9]?[0-9]?_000\b'
# What svc needs to run, what its tests need, and what makes it a machine that one can log in to.
PACKAGES=(
  runc crun nftables iproute2 tini skopeo bubblewrap mmdebstrap busybox-static e2fsprogs mount tar zstd ca-certificates passwd qemu-utils
  gcc libc6-dev libseccomp-dev make docker-registry python3 procps util-linux bsdutils strace sudo
  systemd-sysv udev openssh-server openssh-client initramfs-tools "$KERNEL"
)

main() {
  local verb=${1:-start}
  [ $# -eq 0 ] || shift
  case "$verb" in
    start) build && boot ;;
    sync) sync_checkout ;;
    run) in_guest "cd $CHECKOUT && $*" ;;
    test) in_guest "cd $CHECKOUT && node_modules/.bin/node --test --test-concurrency=1 --test-timeout=$TEST_TIMEOUT_MS $*" ;;
    stop) stop ;;
    remove) stop && rm -rf "$GUEST" ;;
    *) fail "there is no command $verb" 'read the first lines of this script' ;;
  esac
}

build() {
  [ -e "$GUEST/disk" ] && return
  [ "$EUID" -eq 0 ] || fail 'building the guest needs root' "try: sudo $0 start"
  command -v mmdebstrap qemu-system-x86_64 >/dev/null || fail 'a program is missing' 'apt-get install --no-install-recommends mmdebstrap qemu-system-x86'
  step_begins 'guest' "installing Debian 12 in $GUEST"
  rm -rf "$GUEST/root" && mkdir -p "$GUEST"
  [ -e "$GUEST/key" ] || ssh-keygen -q -t ed25519 -N '' -f "$GUEST/key"
  local packages
  packages=$(IFS=, && echo "${PACKAGES[*]}")
  mmdebstrap --variant=minbase --mode=root --include="$packages" bookworm "$GUEST/root"
  settle "$GUEST/root"
  cp "$GUEST"/root/boot/vmlinuz-* "$GUEST/kernel"
  cp "$GUEST"/root/boot/initrd.img-* "$GUEST/initrd"
  truncate -s 12G "$GUEST/disk.new"
  mke2fs -q -t ext4 -L root -d "$GUEST/root" "$GUEST/disk.new"
  # Renamed when it is complete: a build that was interrupted begins anew.
  mv "$GUEST/disk.new" "$GUEST/disk"
  rm -rf "$GUEST/root"
  step_done 'guest' "$(du -sh "$GUEST" | cut -f 1) in $GUEST"
}

# A machine of one's own: a name, an address on the only network it has, root's key, a user without rights.
settle() {
  local root=$1
  echo svc-guest >"$root/etc/hostname"
  printf '127.0.0.1 localhost svc-guest\n::1 localhost\n' >"$root/etc/hosts"
  echo 'LABEL=root / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"
  printf '[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n' >"$root/etc/systemd/network/all.network"
  install -d -m 700 "$root/root/.ssh"
  install -m 600 "$GUEST/key.pub" "$root/root/.ssh/authorized_keys"
  chroot "$root" systemctl -q enable systemd-networkd ssh
  chroot "$root" systemctl -q mask docker-registry systemd-networkd-wait-online
  chroot "$root" useradd --create-home --shell /bin/bash user
  chroot "$root" useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin svc
  # Now, because it takes minutes over the network of the guest.
  mkdir -p "$root$CHECKOUT"
  cp -a "$ROOT/node_modules" "$root$CHECKOUT/"
  [ ! -e /opt/svc/bin/runsc ] || install -D -m 755 /opt/svc/bin/runsc "$root/opt/svc/bin/runsc"
}

boot() {
  if answers; then
    step_done 'guest' 'runs already'
    return
  fi
  # SAFETY: `restrict` keeps the guest from every network but its own; only a port of this machine's loopback leads in.
  nice -n 10 qemu-system-x86_64 -accel tcg,thread=multi -cpu max,svm=off -smp 2 -m 4096 -nodefaults -display none -no-reboot \
    -kernel "$GUEST/kernel" -initrd "$GUEST/initrd" -append 'root=LABEL=root rw console=ttyS0 systemd.show_status=1' \
    -drive "file=$GUEST/disk,format=raw,if=virtio,cache=unsafe" \
    -netdev "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:$PORT-:22" -device virtio-net-pci,netdev=net \
    -device virtio-rng-pci -serial "file:$GUEST/console" -pidfile "$GUEST/pid" -daemonize
  step_begins 'guest' "boots; its console is $GUEST/console"
  local waited=0
  until answers; do
    [ $waited -lt $BOOT_SECONDS ] || fail 'the guest does not answer' "read $GUEST/console"
    sleep 5
    waited=$((waited + 5))
  done
  step_done 'guest' "$(in_guest uname -r)"
}

answers() {
  [ -e "$GUEST/pid" ] && timeout 60 ssh "${SSH[@]}" true 2>/dev/null
}

SSH=(
  -i "$GUEST/key" -p "$PORT" -o BatchMode=yes -o LogLevel=ERROR -o ConnectTimeout=50
  -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null root@127.0.0.1
)

in_guest() {
  ssh "${SSH[@]}" "$@"
}

sync_checkout() {
  in_guest "find $CHECKOUT -mindepth 1 -maxdepth 1 ! -name node_modules -exec rm -rf {} +"
  tar -C "$ROOT" --exclude=.git --exclude=node_modules -c . | in_guest "tar -C $CHECKOUT -x --no-same-owner"
  # Deadlines are meant for machines, not for emulations of them: those of the copy are twenty minutes.
  in_guest "cd $CHECKOUT && grep -rlE '$DEADLINES' packages test --include=*.ts | xargs sed -i -E 's/$DEADLINES/\\1$TEST_TIMEOUT_MS/'"
}

stop() {
  [ -e "$GUEST/pid" ] || return 0
  local pid
  pid=$(cat "$GUEST/pid")
  timeout 120 ssh "${SSH[@]}" systemctl poweroff 2>/dev/null || true
  local waited=0
  while [ -d "/proc/$pid" ] && [ $waited -lt 120 ]; do
    sleep 1
    waited=$((waited + 1))
  done
  # SAFETY: the id QEMU wrote into its own file; its name is looked at, since the id may belong to somebody else by now.
  if [ -d "/proc/$pid" ] && grep -q qemu "/proc/$pid/comm"; then kill "$pid"; fi
  rm -f "$GUEST/pid"
}

main "$@"
