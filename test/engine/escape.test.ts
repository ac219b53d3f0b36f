import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { GUEST_CAPABILITIES } from '../../packages/engine/src/runtime/capabilities.ts';
import { GuestProbe } from './guest-probe.ts';
import { CLASSES, recordsOf, startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

/** Bits as in linux/capability.h. */
const CAPABILITY_BITS: Record<string, bigint> = {
  CAP_CHOWN: 0n,
  CAP_DAC_OVERRIDE: 1n,
  CAP_FOWNER: 3n,
  CAP_FSETID: 4n,
  CAP_KILL: 5n,
  CAP_SETGID: 6n,
  CAP_SETUID: 7n,
  CAP_SETPCAP: 8n,
  CAP_NET_BIND_SERVICE: 10n,
  CAP_SYS_CHROOT: 18n,
};
const DOCUMENTED = GUEST_CAPABILITIES.reduce(
  (mask, name) => mask | (1n << (CAPABILITY_BITS[name] ?? 63n)),
  0n,
);

/** Calls on files of svc-init are refused by the file system or find nothing, one that gVisor does not have by its absence. */
const OTHER_REFUSALS: Record<string, readonly string[]> = {
  take_descriptor_of_init: ['EPERM', 'ENOSYS'],
  open_memory_of_init: ['EACCES'],
  write_program_of_init: ['EACCES'],
  write_init: ['ENOENT'],
  truncate_init: ['ENOENT'],
};

const MASKED =
  'acpi asound buddyinfo cmdline config.gz diskstats interrupts kallsyms kcore key-users keys latency_stats locks modules partitions pressure sched_debug schedstat scsi softirqs swaps sysrq-trigger timer_list timer_stats zoneinfo'
    .split(' ')
    .map((name) => `/proc/${name}`);

const HOST_SETTINGS = [
  'kernel/core_pattern',
  'kernel/domainname',
  'kernel/hostname',
  'kernel/modprobe',
  'kernel/panic',
  'kernel/pid_max',
  'kernel/sysrq',
  'vm/drop_caches',
  'vm/overcommit_memory',
  'fs/file-max',
  'fs/suid_dumpable',
  'net/ipv4/ip_forward',
].map((name) => `/proc/sys/${name}`);

/** Names the files below a folder that can be opened for writing, which alone changes none. Their modes say nothing: the mount decides. */
function openAllToWrite(folder: string): string {
  return `find ${folder} -type f 2>/dev/null | while read -r file; do (: >> "$file") 2>/dev/null && echo "$file"; done`;
}

const HOST_DEVICES = /\/dev\/(?:kvm|mem|kmem|port|fuse|net\/tun|loop|sd|vd|nvme|dm-|mapper)/;

let engine: TestEngine;
let probe: GuestProbe;
before(async () => {
  [engine, probe] = await Promise.all([TestEngine.start(), GuestProbe.compile()]);
});
after(async () => {
  await engine.destroy();
});

function field(status: string, name: string): string | undefined {
  return new RegExp(`^${name}:\\s+(.*)$`, 'm').exec(status)?.[1];
}

for (const isolation of CLASSES) {
  const sharesHostKernel = isolation === 'container';

  describe(`on class ${isolation}`, { concurrency: false }, () => {
    let sandbox: TestSandbox;
    before(async () => {
      sandbox = await startSandbox(engine, isolation);
      await probe.putInto(sandbox);
    });
    after(() => sandbox.remove());
    const output = async (script: string) => (await sandbox.sh(script)).stdout;

    test('every call that steers the kernel, the host or PID 1 is refused', async () => {
      const tried = await probe.run(sandbox, ['calls']);
      assert.ok(Object.keys(tried).length > 50, 'the probe has tried them');
      const allowed = Object.entries(tried).filter(
        ([name, result]) => !(OTHER_REFUSALS[name] ?? ['EPERM']).includes(result),
      );
      assert.deepEqual(allowed, []);
    });

    test('processes have the documented capabilities, exactly', async () => {
      for (const path of ['/proc/self/status', '/proc/1/status']) {
        const status = await output(`cat ${path}`);
        for (const set of ['CapPrm', 'CapEff', 'CapBnd'])
          assert.equal(BigInt(`0x${field(status, set)}`), DOCUMENTED, `${set} in ${path}`);
        assert.equal(BigInt(`0x${field(status, 'CapInh')}`), 0n);
        assert.equal(BigInt(`0x${field(status, 'CapAmb') ?? '0'}`), 0n);
      }
      const status = (await sandbox.sh('cat /proc/self/status', { user: 'user' })).stdout;
      assert.equal(BigInt(`0x${field(status, 'CapEff')}`), 0n, 'another user has none');
    });

    test('processes are filtered and cannot gain privileges', async () => {
      for (const path of ['/proc/self/status', '/proc/1/status']) {
        const status = await output(`cat ${path}`);
        assert.equal(field(status, 'Seccomp'), '2', path);
        // gVisor's kernel has no such line.
        if (sharesHostKernel) assert.equal(field(status, 'NoNewPrivs'), '1', path);
      }
      await sandbox.sh('cp /bin/busybox /tmp/busybox; chmod 4755 /tmp/busybox');
      const { stdout } = await sandbox.sh('/tmp/busybox id -u; /tmp/busybox id -ru', { user: 'user' });
      assert.equal(stdout, '1000\n1000\n');
    });

    test('root inside is an unprivileged user outside', async () => {
      const statuses = sandbox
        .hostPids()
        .flatMap((pid) => ifItLives(() => readFileSync(`/proc/${pid}/status`, 'latin1')));
      assert.ok(statuses.length > 0);
      for (const status of statuses) {
        const ids = `${field(status, 'Uid')}\t${field(status, 'Gid')}`.split('\t').map(Number);
        for (const id of ids) assert.ok(id >= 0x1000_0000, `${id} of ${field(status, 'Pid')}`);
      }
      if (!sharesHostKernel) return;
      const [inside, outside, count] = (await output('cat /proc/self/uid_map')).trim().split(/\s+/);
      assert.deepEqual([inside, count], ['0', '65536']);
      assert.ok(Number(outside) >= 0x1000_0000, outside);
    });

    test('no namespace is shared with the host', async () => {
      // gVisor's own processes stay in two of the host's; what the guest sees there is that kernel's own.
      const kinds = ['user', 'mnt', 'net', 'ipc', 'uts', ...(sharesHostKernel ? ['pid', 'cgroup'] : [])];
      for (const kind of kinds) {
        const ours = readlinkSync(`/proc/self/ns/${kind}`);
        assert.notEqual((await output(`readlink /proc/self/ns/${kind}`)).trim(), ours, kind);
        const theirs = sandbox
          .hostPids()
          .flatMap((pid) => ifItLives(() => readlinkSync(`/proc/${pid}/ns/${kind}`)));
        assert.ok(theirs.length > 0 && !theirs.includes(ours), kind);
      }
    });

    test('the mount table names no path of the host', async () => {
      const mounts = await output('cat /proc/self/mountinfo /proc/mounts');
      assert.match(mounts, / \/\.svc ro/);
      for (const path of [
        engine.folder,
        engine.runFolder,
        basename(engine.folder),
        engine.instance,
        '/run/svc',
      ])
        assert.ok(!mounts.includes(path), `${path} in ${mounts}`);
    });

    test('files with facts of the host are absent or empty', async () => {
      // gVisor's kernel tells how it would have been started itself.
      const paths = MASKED.filter((path) => sharesHostKernel || path !== '/proc/cmdline');
      const script = `for path in ${paths.join(' ')}; do [ -d $path ] && ls -A $path || head -c 9 $path; done`;
      assert.equal(await output(`${script} 2>/dev/null`), '');
      assert.equal(await output('ls -A /sys/firmware /sys/devices/virtual/dmi 2>/dev/null | grep -v :'), '');
    });

    test('disks and starts of other sandboxes are not visible', async () => {
      assert.equal(await output('find /sys -name backing_file -o -name "loop[0-9]*" 2>/dev/null'), '');
      const disks = await output('find /sys/block /sys/class/block /sys/fs/ext4 -mindepth 1 2>/dev/null');
      assert.equal(disks, '');
      // One file for all sandboxes: its links and the events of its use would count them.
      assert.equal(await output('ls /.svc/init 2>/dev/null'), '');
      const seen = await output('stat -L -c "%h %n" /proc/1/exe /proc/1/map_files/* 2>/dev/null');
      assert.equal(seen, '', 'nor by way of the process that runs it');
    });

    test('neither settings of the kernel nor anything in /sys can be changed', async () => {
      const settings = () => HOST_SETTINGS.map((path) => [path, readIfThere(path)]);
      const before = settings();
      const { stdout } = await sandbox.sh(
        `for path in ${HOST_SETTINGS.join(' ')} /proc/sysrq-trigger /proc/irq/0/smp_affinity; do
          [ -e $path ] && (echo 1 > $path) 2>/dev/null && echo $path; done`,
      );
      assert.deepEqual(settings(), before);
      // gVisor's kernel has settings of its own.
      if (sharesHostKernel) assert.equal(stdout, '');
      assert.equal(
        await output('touch /sys/x 2>/dev/null || mkdir /sys/kernel/x 2>/dev/null || echo no'),
        'no\n',
      );
      assert.match(await output('grep " /sys " /proc/mounts'), /sysfs ro/);
      const writable = 'find /sys -type f -perm -200 2>/dev/null | head -n 300';
      assert.equal(await output(`for f in $(${writable}); do (: >> $f) 2>/dev/null && echo $f; done`), '');
    });

    test('no cgroup can be steered: nothing opens for writing, and release_agent is not there', async () => {
      assert.equal(
        await output('find / -xdev -name release_agent -o -path "/sys/*" -name release_agent'),
        '',
      );
      assert.equal(await output(openAllToWrite('/sys/fs/cgroup')), '');
      const refused = `cd /sys/fs/cgroup && for attempt in 'mkdir inner' 'mount -o remount,rw /sys/fs/cgroup' \
        'mount -o remount,bind,rw /sys/fs/cgroup' 'umount /sys/fs/cgroup'; do $attempt 2>/dev/null && echo "$attempt"; done`;
      assert.equal(await output(refused), '');
      // The same attempts where they are allowed, so that their silence above says something.
      const allowed =
        'mkdir -p /tmp/tree/inner && touch /tmp/tree/file /tmp/tree/inner/file && chmod 0 /tmp/tree/file';
      const found = await output(`${allowed} && (${openAllToWrite('/tmp/tree')}) | sort`);
      assert.equal(found, '/tmp/tree/file\n/tmp/tree/inner/file\n');
    });

    test('/dev has only harmless devices, and none of the host is open', async () => {
      const allowed = ['full', 'null', 'ptmx', 'pts/ptmx', 'random', 'tty', 'urandom', 'zero'];
      // gVisor's kernel serves these two itself; it has neither from the host, as the descriptors below show.
      const known = sharesHostKernel ? allowed : [...allowed, 'fuse', 'net/tun'];
      const found = (await output('find /dev -type c -o -type b')).trim().split('\n');
      assert.deepEqual(
        found.filter((path) => !known.includes(path.slice('/dev/'.length))),
        [],
      );
      assert.equal(await output('find / -xdev -type b -o -xdev -type c 2>/dev/null'), '');
      for (const pid of sandbox.hostPids())
        for (const { target } of openIn(pid)) assert.doesNotMatch(target, HOST_DEVICES);
    });

    test('a process begins with its three streams and no other descriptor', async () => {
      const { stdout } = await sandbox.run({ cmd: '/bin/ls', args: ['/proc/self/fd'] });
      // The fourth is the folder that ls reads.
      assert.equal(stdout, '0\n1\n2\n3\n');
      const targets = await output('for fd in 0 1 2; do readlink /proc/$$/fd/$fd; done');
      assert.match(targets, /^(pipe:\[\d+\]\n){3}$/);
    });

    test('no process of the sandbox has a folder of the host open, as its place or as its root', () => {
      const folders = ['/', '/etc', '/home', '/proc', '/root', '/run', '/sys', '/tmp', '/var', process.cwd()];
      const ours = new Set([...folders, engine.folder, engine.runFolder].map(identityOf));
      for (const pid of sandbox.hostPids()) {
        for (const { target, identity } of openIn(pid)) assert.ok(!ours.has(identity), `${target} of ${pid}`);
      }
    });

    test('the environment holds nothing of the host, and the token of the sandbox is nowhere', async () => {
      const { stdout } = await sandbox.run({ cmd: '/bin/env' });
      const names = stdout
        .trim()
        .split('\n')
        .map((line) => line.split('=')[0] ?? '');
      assert.deepEqual(names.toSorted(), ['HOME', 'PATH']);
      const token = tokenOf(engine, sandbox);
      assert.match(token, /^[0-9a-f]{64}$/);
      const readable = await output(
        'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/1/maps /proc/1/auxv /proc/1/stack 2>/dev/null; find /.svc /proc/1 -type f -maxdepth 1 ! -name init -exec cat {} + 2>/dev/null | head -c 200000',
      );
      assert.ok(!readable.includes(token));
    });

    test('neither processes of the host nor of another sandbox are visible or can be reached', async () => {
      const other = await startSandbox(engine, isolation, {
        runtime: { cmd: ['/bin/sh', '-c', 'sleep 987654 & wait'] },
      });
      const processes = await output('ps -o pid,args; cat /proc/[0-9]*/cmdline | tr "\\0" "\\n"');
      assert.doesNotMatch(processes, /987654|node|tini|runc|runsc/);
      assert.match(processes, /^\s+1 \/\.svc\/init$/m);
      assert.ok((await output('ls -d /proc/[0-9]* | wc -l')) < '9');
      const otherPids = [process.pid, engine.pid, ...other.hostPids()];
      const { stdout } = await sandbox.sh(
        `for pid in ${otherPids.join(' ')}; do kill -0 $pid 2>/dev/null && cat /proc/$pid/cmdline; done`,
      );
      assert.doesNotMatch(stdout, /987654|node/);
      await other.remove();
    });

    test('svc-init cannot be overwritten through the programs that run it', async () => {
      const programs = () =>
        createHash('sha256')
          .update(readFileSync(join(engine.runFolder, 'guests/svc-init')))
          .digest('hex');
      const before = programs();
      // A program of the image that is a link to the program that starts it, and a writer that waits for its chance.
      await sandbox.sh('ln -sf /proc/self/exe /bin/evil');
      const writer = sandbox.sh(`: > /tmp/wrote; i=0; while [ $i -lt 15 ]; do i=$((i+1))
        for exe in /proc/[0-9]*/exe /.svc/init; do
          case $(readlink $exe) in /bin/*) ;; *) (echo bad > $exe) 2>/dev/null && echo $exe >> /tmp/wrote;; esac
        done; done`);
      for (let round = 0; round < 5; round++)
        await sandbox.run({ cmd: '/bin/evil', args: ['serve-files', '/'] }, { timeoutMs: 5000 });
      assert.equal((await writer).reason, 'exit');
      assert.deepEqual(await sandbox.sh('cat /tmp/wrote'), {
        code: 0,
        reason: 'exit',
        stdout: '',
        stderr: '',
      });
      assert.equal(programs(), before);
    });

    test('the profile `restricted` leaves root without capabilities and without ptrace', async () => {
      assert.deepEqual(await probe.run(sandbox, ['default-calls']), {
        ptrace_child: 'ok',
        chroot: 'ok',
        chown: 'ok',
        setuid: 'ok',
      });
      const strict = await startSandbox(engine, isolation, { security_profile: 'restricted' });
      await probe.putInto(strict);
      assert.deepEqual(await probe.run(strict, ['default-calls']), {
        ptrace_child: 'EPERM',
        chroot: 'EPERM',
        chown: 'EPERM',
        setuid: 'EPERM',
      });
      const refused = Object.values(await probe.run(strict, ['calls']));
      assert.ok(!refused.includes('ok'));
      const status = (await strict.sh('id -u; cat /proc/self/status')).stdout;
      assert.match(status, /^0\n/);
      for (const set of ['CapPrm', 'CapEff', 'CapBnd', 'CapInh'])
        assert.equal(BigInt(`0x${field(status, set)}`), 0n, set);
      await strict.remove();
    });
  });
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // Write-only, or not on this kernel.
    return null;
  }
}

/** Everything that a process of the host has open, also as its root and its place. */
function openIn(pid: number): { target: string; identity: string }[] {
  const descriptors = ifItLives(() => readdirSync(`/proc/${pid}/fd`)).flat();
  return [...descriptors.map((fd) => `fd/${fd}`), 'cwd', 'root'].flatMap((name) => {
    const path = `/proc/${pid}/${name}`;
    return ifItLives(() => ({ target: readlinkSync(path), identity: identityOf(path) }));
  });
}

/** Nothing about a process that ended, or a descriptor that was closed, meanwhile. */
function ifItLives<Found>(look: () => Found): Found[] {
  try {
    return [look()];
  } catch {
    return [];
  }
}

/** Device and inode, which identify the file in every mount namespace. */
function identityOf(path: string): string {
  const { dev, ino } = statSync(path);
  return `${dev}:${ino}`;
}

function tokenOf(engine: TestEngine, sandbox: TestSandbox): string {
  return recordsOf(engine).find(({ id }) => id === sandbox.id)?.run?.token ?? '';
}
