#!/bin/sh
# The second checklist: what the kernel lets a container do that holes have been made of. Runs inside a sandbox, as root of it, with
# busybox alone. Prints one line per way that is open; nothing when all are closed.

open_way() { echo "OPEN: $*"; }

field() { awk -v name="$1:" '$1 == name { print $2 }' /proc/self/status; }

# 1. What every escape by a system call begins with.
unshare -r true 2>/dev/null && open_way 'user namespaces'
unshare -m true 2>/dev/null && open_way 'mount namespaces'
unshare -n true 2>/dev/null && open_way 'network namespaces'
mkdir -p /tmp/place
mount -t tmpfs none /tmp/place 2>/dev/null && { open_way 'mount of a tmpfs'; umount /tmp/place; }
mount -t proc none /tmp/place 2>/dev/null && { open_way 'mount of proc'; umount /tmp/place; }
mount --bind / /tmp/place 2>/dev/null && { open_way 'bind mount'; umount /tmp/place; }
mount -o remount,rw /sys 2>/dev/null && open_way '/sys can be made writable'
umount /proc/sys 2>/dev/null && open_way 'a read-only path can be uncovered'
umount /proc/kcore 2>/dev/null && open_way 'a masked path can be uncovered'
pivot_root /tmp/place /tmp/place 2>/dev/null && open_way 'pivot_root'
nsenter -t 1 -m true 2>/dev/null && open_way 'nsenter into PID 1'
swapon /dev/null 2>/dev/null && open_way 'swapon'
losetup -f 2>/dev/null | grep -q . && losetup -f /bin/busybox 2>/dev/null && open_way 'a loop device'
hostname escaped 2>/dev/null && open_way 'the name of the host'
# A kernel that takes modules says that this is none; one that takes none does not look at it.
echo none >/tmp/none.ko
insmod /tmp/none.ko 2>&1 | grep -q 'not permitted\|not implemented' || open_way "insmod: $(insmod /tmp/none.ko 2>&1)"
date -s 2001-01-01 >/dev/null 2>&1
[ "$(date +%Y)" = 2001 ] && open_way 'the clock'
ip link add dummy0 type dummy 2>/dev/null && open_way 'network interfaces'
ip route add 192.0.2.0/24 via 127.0.0.1 2>/dev/null && open_way 'routes'
[ "${1:-}" != gvisor ] && dmesg 2>/dev/null | grep -q . && open_way "the kernel's log"

# 2. The walls themselves.
[ "$(field Seccomp)" = 2 ] || open_way 'no seccomp filter'
new_privileges=$(field NoNewPrivs)
[ "${new_privileges:-1}" = 1 ] || open_way 'no_new_privs is not set'
[ "$(field CapInh)" = 0000000000000000 ] || open_way 'inheritable capabilities'
# In class gvisor (named as argument) the mapping is one of gVisor's own.
if [ "${1:-}" != gvisor ]; then
  awk '$1 == 0 && $2 == 0 { exit 1 }' /proc/self/uid_map || open_way "root is the host's root"
fi

# 3. Programs that gain privileges.
cp /bin/busybox /tmp/suid && chmod 4755 /tmp/suid
[ "$(su user -c '/tmp/suid id -u' 2>/dev/null || echo 1000)" = 0 ] && open_way 'set-user-id programs'
rm -f /tmp/suid

# 4. Descriptors and folders that the parent process left open.
for fd in /proc/self/fd/* /proc/1/fd/*; do
  target=$(readlink "$fd" 2>/dev/null) || continue
  case $target in /proc/*/fd* | /dev/null | pipe:* | socket:* | anon_inode:* | /.svc | /.svc/*) ;; /*) [ -d "$target" ] && open_way "descriptor $fd: $target" ;; esac
done
ls /proc/self/cwd/../../../../../../../../ | grep -qx svc-host-only && open_way 'the working folder is outside'
for path in /proc/1/root/etc/hostname /proc/1/cwd/etc/hostname; do
  [ "$(cat "$path" 2>/dev/null)" = "$(cat /etc/hostname 2>/dev/null)" ] || { cat "$path" >/dev/null 2>&1 && open_way "$path"; }
done

# 5. Networks that belong to the host.
for address in 169.254.169.254:80 100.100.100.200:80 127.0.0.1:22 127.0.0.1:5555 127.0.0.1:2375; do
  timeout 1 nc -w 1 "${address%:*}" "${address#*:}" </dev/null >/dev/null 2>&1 && open_way "address $address"
done

# 6. Shared memory or queues of other processes.
[ "$(ipcs -m 2>/dev/null | grep -c '^0x')" = 0 ] || open_way 'shared memory of others'
grep -q . /proc/sysvipc/msg 2>/dev/null && [ "$(wc -l </proc/sysvipc/msg)" -gt 1 ] && open_way 'queues of others'
exit 0
