import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { Engine, releaseBinary, run, shell } from './engine.ts';

async function probe(t: TestContext, profile: string): Promise<Record<string, string>> {
  const engine = await Engine.start(t, { binary: releaseBinary, profile });
  const program = join(engine.dir, 'probe');
  execFileSync('gcc', ['-static', '-O1', '-Wall', join(import.meta.dirname, 'probe.c'), '-o', program]);
  const { stdout, end } = await run(await engine.session(), program);
  assert.equal(end.payload['code'], 0, stdout);
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  );
}

const REFUSED = [
  'unshare_user',
  'unshare_mount',
  'clone_user',
  'mount',
  'umount',
  'open_tree',
  'setns',
  'pivot_root',
  'keyctl',
  'add_key',
  'bpf',
  'perf_event_open',
  'userfaultfd',
  'io_uring',
  'open_by_handle',
  'settimeofday',
  'clock_settime',
  'reboot',
  'syslog',
  'swapon',
  'init_module',
  'kexec',
  'acct',
  'quotactl',
  'personality_norandom',
  'tiocsti',
  'tiocsti_high',
  'tioclinux',
  'socket_vsock',
  'socket_alg',
  'socket_packet',
];
const ALLOWED = [
  'unshare_files',
  'fionread',
  'socket_unix',
  'socket_inet',
  'socket_inet6',
  'mknod_fifo',
  'mmap',
];
const ONLY_BY_DEFAULT = [
  'personality_query',
  'socket_netlink_route',
  'ptrace_child',
  'process_vm_readv',
  'chroot',
  'mknod_device',
];

test('the default profile refuses what leads out and allows what programs need', async (t) => {
  const results = await probe(t, 'default');
  for (const name of REFUSED) assert.equal(results[name], 'EPERM', name);
  for (const name of [...ALLOWED, ...ONLY_BY_DEFAULT]) assert.equal(results[name], '0', name);
  for (const name of ['clone3', 'newer_syscall', 'x32', 'int80'])
    assert.equal(results[name] ?? 'ENOSYS', 'ENOSYS', name);
});

test("there is no audit in either profile, which Debian's useradd and sudo accept", async (t) => {
  for (const profile of ['default', 'restricted'])
    assert.equal((await probe(t, profile))['socket_netlink_audit'], 'EPROTONOSUPPORT', profile);
});

test('the restricted profile refuses more', async (t) => {
  const results = await probe(t, 'restricted');
  for (const name of [...REFUSED, ...ONLY_BY_DEFAULT]) assert.equal(results[name], 'EPERM', name);
  for (const name of ALLOWED) assert.equal(results[name], '0', name);
});

test('without a profile nothing is filtered, and no_new_privs stays', async (t) => {
  const session = await (await Engine.start(t, { binary: releaseBinary, profile: 'none' })).session();
  const { stdout, end } = await shell(
    session,
    'grep -E "NoNewPrivs|Seccomp:" /proc/self/status; unshare --mount true',
  );
  assert.deepEqual([stdout, end.payload['code']], ['NoNewPrivs:\t1\nSeccomp:\t0\n', 0]);
});

test('every process has no_new_privs and the filter; capabilities follow the profile and the user', async (t) => {
  const status = async (profile: string, user: string): Promise<Record<string, string>> => {
    const engine = await Engine.start(t, { binary: releaseBinary, profile });
    const { stdout } = await shell(await engine.session(), 'cat /proc/self/status', { user });
    return Object.fromEntries(stdout.split('\n').map((line) => line.split(':\t') as [string, string]));
  };
  const none = '0000000000000000';
  const root = await status('default', 'root');
  assert.deepEqual([root['NoNewPrivs'], root['Seccomp']], ['1', '2']);
  assert.notEqual(root['CapEff'], none);
  const unprivileged = await status('default', '65534:65534');
  assert.deepEqual(
    [unprivileged['CapEff'], unprivileged['CapPrm'], unprivileged['CapInh'], unprivileged['CapAmb']],
    [none, none, none, none],
  );
  for (const user of ['root', 'daemon']) {
    const restricted = await status('restricted', user);
    assert.deepEqual([restricted['NoNewPrivs'], restricted['Seccomp']], ['1', '2']);
    for (const set of ['CapEff', 'CapPrm', 'CapInh', 'CapAmb', 'CapBnd'])
      assert.equal(restricted[set], none, `${set} of ${user}`);
  }
});

test('everything works in the restricted profile', async (t) => {
  const session = await (await Engine.start(t, { profile: 'restricted' })).session();
  assert.equal(
    (await shell(session, 'id -u; ls / > /dev/null && (echo sub) | cat', { tty: true })).stdout,
    '0\r\nsub\r\n',
  );
  assert.equal((await shell(session, 'echo $(id -u):$(id -g)', { user: 'daemon' })).stdout, '1:1\n');
});
