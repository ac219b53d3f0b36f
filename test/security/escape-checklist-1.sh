#!/bin/sh
# The first checklist: what a container gives away or lets be changed that leads to its host. Runs inside a sandbox, as root of it.
# Prints one line per way that is open; nothing when all are closed. Changes nothing: what it opens for writing it does not write to.

open_way() { echo "OPEN: $*"; }

# Whether a file can be opened for writing.
can_write() { [ -e "$1" ] && (exec 3>>"$1") 2>/dev/null; }

# 1. Sockets of the container engine.
for path in /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock /run/crio/crio.sock /run/podman/podman.sock \
  /var/run/docker/libcontainerd/docker-containerd.sock /run/systemd/private /run/dbus/system_bus_socket; do
  [ -S "$path" ] && open_way "socket $path"
done

# 2. Capabilities that are as good as root of the host.
effective=$(awk '/^CapEff/ { print $2 }' /proc/self/status)
for bit in 2 12 13 14 15 16 17 19 20 21 22 23 24 25 26 29 30 31 32 33 34 35 36 37 38 39 40; do
  [ $(((0x$effective >> bit) & 1)) = 1 ] && open_way "capability $bit"
done

# 3. Devices of the host, there already or to be made.
for device in mem kmem port sda vda nvme0n1 loop0 loop-control kvm vhost-net kmsg mapper/control; do
  [ -e "/dev/$device" ] && head -c 1 "/dev/$device" >/dev/null 2>&1 && open_way "device $device"
done
mknod /tmp/disk b 8 0 2>/dev/null && { head -c 1 /tmp/disk >/dev/null 2>&1 && open_way 'a block device can be made and read'; rm -f /tmp/disk; }
mknod /tmp/memory c 1 1 2>/dev/null && { head -c 1 /tmp/memory >/dev/null 2>&1 && open_way 'a memory device can be made and read'; rm -f /tmp/memory; }

# 4. Cgroups: a program of ours that the host's kernel starts.
find / -name release_agent 2>/dev/null | while read -r path; do can_write "$path" && open_way "$path"; done
mkdir -p /tmp/cgroup && mount -t cgroup -o memory cgroup /tmp/cgroup 2>/dev/null && open_way 'a cgroup tree can be mounted'

# 5. Settings of the kernel that start programs, or end everything. In class gvisor (named as argument) they are gVisor's.
if [ "${1:-}" != gvisor ]; then
  for path in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug /proc/sys/vm/panic_on_oom \
    /proc/sys/fs/binfmt_misc/register /proc/sysrq-trigger /sys/kernel/uevent_helper /sys/kernel/vmcoreinfo \
    /proc/sys/kernel/randomize_va_space /proc/sys/vm/overcommit_memory; do
    can_write "$path" && open_way "$path"
  done
fi
for path in /proc/kcore /proc/kmem /proc/kallsyms /sys/firmware/efi/vars /sys/kernel/debug /sys/kernel/tracing /sys/kernel/security; do
  if [ -d "$path" ]; then [ -n "$(ls -A "$path" 2>/dev/null)" ] && open_way "$path"
  else [ "$(head -c 1 "$path" 2>/dev/null | wc -c)" = 1 ] && open_way "$path"; fi
done

# 6. Files of the host among the mounts.
grep -E ' (/var/lib/docker|/var/lib/kubelet|/etc/kubernetes|/host|/rootfs|/hostfs|/mnt/host)' /proc/mounts | while read -r line; do
  open_way "mount $line"
done
for path in /etc/shadow /root/.ssh /etc/kubernetes /var/run/secrets/kubernetes.io; do
  [ -e "$path" ] && open_way "file $path"
done

# 7. Processes of the host.
for pid in /proc/[0-9]*; do
  tr '\0' ' ' <"$pid/cmdline" 2>/dev/null | grep -Eq 'systemd|dockerd|containerd|kubelet|svc engine|tini|node ' && open_way "process ${pid##*/}"
done
[ "$(cat /proc/1/comm 2>/dev/null)" = systemd ] && open_way 'PID 1 is the host'"'"'s'

# 8. Secrets in the environment.
env | grep -Ei 'token|secret|password|aws_|kube' | cut -d= -f1 | while read -r name; do open_way "variable $name"; done
exit 0
