#!/usr/bin/env bash
# A fresh Debian of either kind with its own kernel, systemd and nothing but cgroup v2, in QEMU by software emulation: for trying svc
# on an architecture, a release, a kernel and a layout that this machine does not have. Ten to thirty times slower than the
# machine; no part of `make test`. As root.
#
#   test/hosts/guest.sh start             builds what is missing, boots, waits until it answers
#   test/hosts/guest.sh sync              copies this checkout, without what was built or installed in it, into the guest
#   test/hosts/guest.sh run COMMAND…      runs a shell command in the guest, in the copy: `make run` first, as on any fresh machine
#   test/hosts/guest.sh test PATH…        runs test files in the guest, with deadlines for a slow machine
#   test/hosts/guest.sh stop              switches it off
#   test/hosts/guest.sh remove            removes image, kernel and keys
#
# SVC_GUEST_ARCH is amd64 or arm64, SVC_GUEST_SUITE bookworm or trixie, SVC_GUEST the folder it lives in, SVC_GUEST_KERNEL the
# package its kernel comes from, SVC_GUEST_PORT where its SSH server answers on this machine. SVC_GUEST_NETWORK=closed boots it
# without a way out, once its set-up is done. SVC_GUEST_PREPARED=yes brings what the set-up would, from this machine, when the guest
# is built: for tests of a layout, not of the set-up. It is ready with its first boot.
set -euo pipefail

# shellcheck source=scripts/terminal.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../scripts/terminal.sh"
# shellcheck source=scripts/debian-suite.sh
source "$ROOT/scripts/debian-suite.sh"
# shellcheck source=scripts/debian-packages.sh
source "$ROOT/scripts/debian-packages.sh"

ARCH=${SVC_GUEST_ARCH:-$(dpkg --print-architecture)}
SUITE=${SVC_GUEST_SUITE:-bookworm}
GUEST=${SVC_GUEST:-/var/tmp/svc-guest-$SUITE-$ARCH}
KERNEL=${SVC_GUEST_KERNEL:-linux-image-$ARCH}
PORT=${SVC_GUEST_PORT:-5522}
CHECKOUT=/srv/svc
BOOT_SECONDS=900
TEST_TIMEOUT_MS=1200000
DEADLINES='((const [A-Z_]*(TIMEOUT|DEADLINE|LIMIT)_MS|timeoutMs|deadlineMs) = |timeout: |timeoutMs: )[1-9][0-9]?[0-9]?_000\b'
# What a fresh machine has, and make: the README asks for it. All else is the set-up's to bring.
FRESH_PACKAGES=(make sudo ca-certificates systemd-sysv udev openssh-server initramfs-tools "$KERNEL")
PREPARED=${SVC_GUEST_PREPARED:-no}

main() {
  local verb=${1:-start}
  [ $# -eq 0 ] || shift
  case "$ARCH" in
    # Not `max` here either: below it (QEMU 7.2) Linux 6.1.0-50 answered mounts with EINVAL and lost the names of its files.
    amd64) MACHINE=x86_64 QEMU_PACKAGE=qemu-system-x86 CONSOLE=ttyS0 CPU=(-cpu Nehalem) ;;
    # Not `max`: Node died of a segmentation fault on it (QEMU 7.2), and pointer authentication takes most of an emulator's time.
    arm64) MACHINE=aarch64 QEMU_PACKAGE=qemu-system-arm CONSOLE=ttyAMA0 CPU=(-machine virt -cpu cortex-a72) ;;
    *) fail "there is no guest of architecture $ARCH" 'SVC_GUEST_ARCH is amd64 or arm64' ;;
  esac
  case "$verb" in
    start)
      build
      boot
      ;;
    sync) sync_checkout ;;
    run) in_guest "cd $CHECKOUT && $*" ;;
    test) in_guest "cd $CHECKOUT && node_modules/.bin/node --test --test-concurrency=1 --test-timeout=$TEST_TIMEOUT_MS $*" ;;
    stop) stop ;;
    choose-modules) choose_modules "$1" ;;
    remove) stop && rm -rf "$GUEST" ;;
    *) fail "there is no command $verb" 'read the first lines of this script' ;;
  esac
}

build() {
  [ -e "$GUEST/disk" ] && return
  [ "$EUID" -eq 0 ] || fail 'building the guest needs root' "try: sudo $0 start"
  command -v mmdebstrap "qemu-system-$MACHINE" >/dev/null ||
    fail 'a program is missing' "apt-get install --no-install-recommends mmdebstrap $QEMU_PACKAGE"
  step_begins 'guest' "installing Debian $SUITE for $ARCH in $GUEST"
  rm -rf "$GUEST/root" && mkdir -p "$GUEST"
  [ -e "$GUEST/key" ] || ssh-keygen -q -t ed25519 -N '' -f "$GUEST/key"
  local included=("${FRESH_PACKAGES[@]}") packages
  if [ "$PREPARED" = yes ]; then
    [ "$ARCH" = "$(dpkg --print-architecture)" ] || fail "this machine has no programs for $ARCH to bring" 'leave out SVC_GUEST_PREPARED'
    included+=("${PACKAGES[@]}" procps nodejs)
  fi
  packages=$(IFS=, && echo "${included[*]}")
  run_foreign_programs
  # SAFETY: the name of the folder is ours; mmdebstrap gives it to the hook as an argument.
  mmdebstrap --variant=minbase --mode=root --skip=check/qemu --architectures="$ARCH" --include="$packages" \
    --essential-hook="$0 choose-modules \"\$1\"" \
    "$SUITE" "$GUEST/root" "deb [signed-by=$DEBIAN_KEYRING] $(debian_mirror) $SUITE main"
  settle "$GUEST/root"
  [ "$PREPARED" != yes ] || prepare "$GUEST/root"
  cp "$GUEST"/root/boot/vmlinuz-* "$GUEST/kernel"
  cp "$GUEST"/root/boot/initrd.img-* "$GUEST/initrd"
  truncate -s 12G "$GUEST/disk.new"
  mke2fs -q -t ext4 -L root -d "$GUEST/root" "$GUEST/disk.new"
  # Renamed when it is complete: a build that was interrupted begins anew.
  mv "$GUEST/disk.new" "$GUEST/disk"
  rm -rf "$GUEST/root"
  step_done 'guest' "$(du -sh "$GUEST" | cut -f 1) in $GUEST"
}

# Of the kernel's modules its first file system holds those of this machine alone: collecting all of them takes half an hour when
# the architecture is emulated.
choose_modules() {
  local settings=$1/etc/initramfs-tools/conf.d modules=$1/usr/share/initramfs-tools/modules.d
  mkdir -p "$settings" "$modules"
  # Not the busybox that the set-up's packages bring: as a static program it does not survive the change to the disk.
  printf '%s\n' MODULES=list BUSYBOX=n >"$settings/svc-guest"
  printf '%s\n' virtio_pci virtio_blk ext4 crc32c >"$modules/svc-guest"
}

# Packages run programs of their architecture while they are installed: until this script ends the kernel hands those of a foreign
# one to QEMU, unless it does so anyway.
run_foreign_programs() {
  [ "$ARCH" != "$(dpkg --print-architecture)" ] || return 0
  local interpreter=/usr/bin/qemu-$MACHINE-static kinds=$GUEST/binary-kinds name=svc-guest-$MACHINE number
  [ -x "$interpreter" ] || fail 'a program is missing' 'apt-get install --no-install-recommends qemu-user-static'
  mkdir -p "$kinds"
  mount -t binfmt_misc binfmt_misc "$kinds" || fail 'the kernel has no binfmt_misc' "build the guest on a machine of $ARCH"
  # shellcheck disable=SC2064 # The names of now.
  trap "[ ! -e '$kinds/$name' ] || echo -1 >'$kinds/$name'; umount '$kinds'" EXIT
  if [ -e "$kinds/qemu-$MACHINE" ] || [ -e "$kinds/$name" ]; then return 0; fi
  case "$ARCH" in arm64) number='\xb7' ;; amd64) number='\x3e' ;; esac
  # The beginning of an ELF file: 64 bits, little endian, a program or a shared object, the number of its architecture.
  printf '%s' ":$name:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00$number\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:$interpreter:F" >"$kinds/register"
}

# Sets the machine up: its name, its address, root's key, a user without rights. It has the certificate authorities of this machine,
# because it reaches the internet through it, and uses the same npm registry.
settle() {
  local root=$1
  echo svc-guest >"$root/etc/hostname"
  printf '127.0.0.1 localhost svc-guest\n::1 localhost\n' >"$root/etc/hosts"
  echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
  echo 'LABEL=root / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"
  printf '[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n' >"$root/etc/systemd/network/all.network"
  install -d -m 700 "$root/root/.ssh"
  install -m 600 "$GUEST/key.pub" "$root/root/.ssh/authorized_keys"
  chroot "$root" systemctl -q enable systemd-networkd ssh
  chroot "$root" systemctl -q mask systemd-networkd-wait-online
  chroot "$root" useradd --create-home --shell /bin/bash user
  install -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  echo 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' >>"$root/etc/environment"
  echo "registry=$(npm config get registry)" >"$root/root/.npmrc"
  mkdir -p "$root$CHECKOUT"
}

# What scripts/setup.sh leaves behind, as it is here: `make build` comes first.
prepare() {
  local root=$1
  tar -C "$ROOT" --exclude=.git -c . | tar -C "$root$CHECKOUT" -x --no-same-owner
  mkdir -p "$root/opt"
  cp -a /opt/svc "$root/opt/"
  raise_deadlines | chroot "$root" bash
}

boot() {
  if answers; then
    step_done 'guest' 'runs already'
    return
  fi
  local network="user,id=net,hostfwd=tcp:127.0.0.1:$PORT-:22"
  # SAFETY: `restrict` keeps the guest from every network but its own; only a port of this machine's loopback leads in. Open, it
  # reaches what this machine reaches, this machine's loopback included.
  [ "${SVC_GUEST_NETWORK:-open}" != closed ] || network+=,restrict=on
  nice -n 10 "qemu-system-$MACHINE" -accel tcg,thread=multi,tb-size=512 "${CPU[@]}" -smp 2 -m 3072 -nodefaults -display none -no-reboot \
    -kernel "$GUEST/kernel" -initrd "$GUEST/initrd" -append "root=LABEL=root rw console=$CONSOLE systemd.show_status=1" \
    -drive "file=$GUEST/disk,format=raw,if=virtio,cache=unsafe" \
    -netdev "$network" -device virtio-net-pci,netdev=net,romfile= \
    -device virtio-rng-pci -serial "file:$GUEST/console" -pidfile "$GUEST/pid" -daemonize
  step_begins 'guest' "boots; its console is $GUEST/console"
  local waited=0
  until answers; do
    [ $waited -lt $BOOT_SECONDS ] || fail 'the guest does not answer' "read $GUEST/console"
    sleep 5
    waited=$((waited + 5))
  done
  step_done 'guest' "$(in_guest uname -rm)"
}

answers() {
  [ -e "$GUEST/pid" ] && timeout 60 ssh "${SSH[@]}" true 2>/dev/null
}

SSH=(
  -i "$GUEST/key" -p "$PORT" -o BatchMode=yes -o LogLevel=ERROR -o ConnectTimeout=50 -o ServerAliveInterval=60
  -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null root@127.0.0.1
)

in_guest() {
  ssh "${SSH[@]}" "$@"
}

sync_checkout() {
  in_guest "find $CHECKOUT -mindepth 1 -maxdepth 1 ! -name node_modules -exec rm -rf {} +"
  tar -C "$ROOT" --exclude=.git --exclude=node_modules --exclude='packages/*/build' -c . | in_guest "tar -C $CHECKOUT -x --no-same-owner"
  raise_deadlines | in_guest bash
}

# Deadlines are meant for machines, not for emulations of them: those of the copy are twenty minutes.
raise_deadlines() {
  echo "cd $CHECKOUT && grep -rlE '$DEADLINES' packages test --include=*.ts | xargs sed -i -E 's/$DEADLINES/\\1$TEST_TIMEOUT_MS/'"
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
  # SAFETY: the id QEMU wrote into its own file; its name is checked, since another process may have the id by now.
  if [ -d "/proc/$pid" ] && grep -q qemu "/proc/$pid/comm"; then kill "$pid"; fi
  rm -f "$GUEST/pid"
}

main "$@"
