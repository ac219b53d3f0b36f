import assert from 'node:assert/strict';
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';
import { GUEST_CAPABILITIES } from './capabilities.ts';
import { RUNTIMES } from './runtimes.ts';
import { startedGuest } from '../testing/started-guest.ts';
import type { StartedGuest } from '../testing/started-guest.ts';

/** Bits as in linux/capability.h. */
const CAPABILITY_BITS: Record<string, number> = {
  CAP_CHOWN: 0,
  CAP_DAC_OVERRIDE: 1,
  CAP_FOWNER: 3,
  CAP_FSETID: 4,
  CAP_KILL: 5,
  CAP_SETGID: 6,
  CAP_SETUID: 7,
  CAP_SETPCAP: 8,
  CAP_NET_BIND_SERVICE: 10,
  CAP_SYS_CHROOT: 18,
};

const GRANTED = GUEST_CAPABILITIES.reduce((mask, name) => mask | (1 << (CAPABILITY_BITS[name] ?? 31)), 0);

const HIDDEN = [
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kallsyms',
  '/proc/kcore',
  '/proc/keys',
  '/proc/modules',
  '/proc/sched_debug',
  '/proc/scsi',
  '/proc/timer_list',
  '/sys/devices/virtual/dmi',
  '/sys/devices/virtual/powercap',
  '/sys/firmware',
];

for (const { name, isolation, create } of RUNTIMES) {
  const sharesHostKernel = isolation === 'container';

  suite(`isolation by ${name}`, { timeout: 240_000 }, () => {
    let guest: StartedGuest;
    before(async () => {
      guest = await startedGuest(create);
    });
    after(() => guest.close());
    const output = async (script: string) => (await guest.control.run(script)).output;
    const ofEachProcess = (look: (pid: number) => string) =>
      guest.cgroups.processIds(guest.spec.handle).flatMap((pid) => {
        try {
          return [look(pid)];
        } catch {
          // The process has ended since it was listed.
          return [];
        }
      });

    test('root inside is an unprivileged user of its own range on the host', () => {
      const { idBase } = guest.spec.slot;
      const statuses = ofEachProcess((pid) => readFileSync(`/proc/${pid}/status`, 'latin1'));
      assert.ok(statuses.length > 0);
      for (const status of statuses) {
        const uids = /^Uid:\s+(.*)$/m.exec(status)?.[1]?.split('\t');
        for (const uid of uids ?? []) assert.ok(Number(uid) >= idBase && Number(uid) < idBase + 65_536, uid);
      }
    });

    test('no process shares a namespace with the host', () => {
      const kinds = ['user', 'mnt', 'net', 'ipc', 'uts'];
      // gVisor's kernel stays in the host's two others; what the guest sees of them is that kernel's own.
      if (sharesHostKernel) kinds.push('pid', 'cgroup');
      for (const kind of kinds) {
        const theirs = ofEachProcess((pid) => readlinkSync(`/proc/${pid}/ns/${kind}`));
        assert.ok(theirs.length > 0 && !theirs.includes(readlinkSync(`/proc/self/ns/${kind}`)), kind);
      }
    });

    test('the sandbox is in the network namespace of its slot', () => {
      const slot = statSync(guest.spec.slot.networkNamespace).ino;
      const theirs = ofEachProcess((pid) => readlinkSync(`/proc/${pid}/ns/net`));
      assert.ok(theirs.includes(`net:[${slot}]`));
    });

    test('PID 1 and what it starts have the documented capabilities and none beyond', async () => {
      for (const status of ['/proc/1/status', '/proc/self/status']) {
        const text = await output(`cat ${status}`);
        for (const set of ['CapEff', 'CapPrm', 'CapBnd']) {
          const mask = Number.parseInt(new RegExp(`^${set}:\\s+(\\w+)$`, 'm').exec(text)?.[1] ?? '', 16);
          assert.equal(mask & ~GRANTED, 0, `${set} in ${status}: ${mask.toString(16)}`);
        }
      }
    });

    test('no program can gain privileges', async () => {
      // gVisor's kernel has no such line and never honours a setuid bit.
      if (sharesHostKernel) assert.match(await output('cat /proc/1/status'), /^NoNewPrivs:\s+1$/m);
      await guest.control.run('cat /bin/busybox > /tmp/busybox; chmod 4755 /tmp/busybox');
      const { output: id } = await guest.control.run('/tmp/busybox id -u; /tmp/busybox id -u -r', 'user');
      assert.equal(id, '1000\n1000\n');
    });

    test('the mount table names no path of the host', async () => {
      const mountinfo = await output('cat /proc/self/mountinfo');
      assert.match(mountinfo, / \/ /);
      for (const path of ['svc-runtime-', 'bundles']) {
        assert.ok(!mountinfo.includes(path), `${path} in ${mountinfo}`);
      }
    });

    test('files that tell about the host or steer it are empty, absent or refused', async () => {
      const shown = await output(
        `for path in ${HIDDEN.join(' ')}; do [ -d $path ] && ls -A $path || cat $path; done 2>/dev/null | head -c 99`,
      );
      assert.equal(shown, '');
      for (const path of ['/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern', '/sys/power/state']) {
        const { code } = await guest.control.run(`[ -e ${path} ] && echo x > ${path}`);
        assert.notEqual(code, 0, path);
      }
    });

    test('/sys is read-only', async () => {
      assert.match(await output('grep " /sys " /proc/self/mountinfo'), / \/sys ro[, ]/);
    });

    test('/dev has only harmless devices', async () => {
      const allowed = 'full null ptmx pts/ptmx random tty urandom zero'.split(' ');
      // gVisor's kernel serves these two itself; both need privileges that the guest lacks.
      const known = sharesHostKernel ? allowed : [...allowed, 'fuse', 'net/tun'];
      const found = await output('find /dev -type c -o -type b');
      for (const device of found.trim().split('\n')) assert.ok(known.includes(device.slice(5)), device);
      assert.notEqual((await guest.control.run('mknod /tmp/sda b 8 0')).code, 0);
    });

    test('the devices of the host keep their owner', () => {
      for (const device of ['null', 'zero', 'tty']) assert.equal(statSync(`/dev/${device}`).uid, 0, device);
    });

    test('nothing of the host is open in the sandbox', async () => {
      const open = await output('ls -l /proc/self/fd /proc/1/fd 2>/dev/null');
      assert.doesNotMatch(open, /-> \/(?!dev\/null|proc\/|bin\/|\.svc)/, open);
      // SAFETY of the check: a folder of the host as working directory is a way out (CVE-2024-21626).
      const places = ofEachProcess((pid) => readlinkSync(`/proc/${pid}/cwd`));
      assert.ok(places.length > 0 && !places.some((place) => place.includes('svc-runtime-')));
    });

    test('the environment of PID 1 and of processes holds nothing of the host', async () => {
      const environment = await output('env; cat /proc/1/environ 2>/dev/null');
      assert.ok(!environment.includes(guest.spec.initToken));
      assert.doesNotMatch(environment, /NODE|HOME=\/root|opt\/svc/);
    });

    test('host processes are invisible', async () => {
      const commands = await output(
        'cat /proc/[0-9]*/cmdline | tr "\\0" " " 2>/dev/null || cat /proc/[0-9]*/cmdline',
      );
      assert.ok(!commands.includes('node'), commands);
    });

    test('/.svc holds our program and cannot be changed', async () => {
      assert.notEqual((await guest.control.run('touch /.svc/x')).code, 0);
      assert.notEqual((await guest.control.run('mount -o remount,rw /.svc')).code, 0);
      assert.match(await output('ls /.svc'), /engine\.sock\ninit\n/);
    });

    test('the hostname is the one asked for', async () => {
      assert.equal((await output('hostname')).trim(), 'guest-host');
    });

    test('files belong to the users of the sandbox, also on its disk', async () => {
      await guest.control.run('echo x > /owned; chown 7:8 /owned');
      assert.equal((await output('stat -c %u:%g /owned')).trim(), '7:8');
      const { uid, gid } = statSync(`${guest.spec.rootfs}/owned`);
      const { idBase } = guest.spec.slot;
      assert.deepEqual([uid - idBase, gid - idBase], [7, 8]);
    });
  });
}
