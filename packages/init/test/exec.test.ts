import assert from 'node:assert/strict';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Engine, checkedBinary, collect, releaseBinary, run, shell } from './engine.ts';

for (const binary of [checkedBinary, releaseBinary]) {
  test(`a process reports its pid, its output and its exit code (${binary.split('/').at(-1)})`, async (t) => {
    const engine = await Engine.start(t, { binary });
    const session = await engine.session();
    const id = session.newId();
    session.send(id, 'core.exec.request', { cmd: '/bin/sh', args: ['-c', 'echo out; echo err >&2; exit 3'] });
    const started = await session.takeType('core.exec.started', id);
    assert.ok((started.payload['pid'] as number) > 1);
    const { stdout, stderr, end } = await collect(session, id);
    assert.deepEqual([stdout, stderr, end.type], ['out\n', 'err\n', 'core.exec.exited']);
    assert.deepEqual(end.payload, { code: 3, signal: null, reason: 'exit' });
  });
}

test('death by a signal has code -1 and names the signal', async (t) => {
  const session = await (await Engine.start(t)).session();
  const { end } = await shell(session, 'kill -TERM $$');
  assert.deepEqual(end.payload, { code: -1, signal: 15, reason: 'signal' });
});

for (const spawn of ['fork', 'shared'] as const) {
  test(`a process that cannot start says why, by kind (${spawn})`, async (t) => {
    const engine = await Engine.start(t, { spawn });
    const session = await engine.session();
    await shell(
      session,
      `printf 'no interpreter line' > ${engine.dir}/text; chmod 755 ${engine.dir}/text; touch ${engine.dir}/plain`,
    );
    const cases: [string, Record<string, unknown>, string, string | null][] = [
      ['no-such-program', {}, 'not_found', 'ENOENT'],
      ['/etc/passwd/nothing', {}, 'not_found', 'ENOTDIR'],
      [`${engine.dir}/plain`, {}, 'permission_denied', 'EACCES'],
      [`${engine.dir}/text`, {}, 'not_executable', 'ENOEXEC'],
      ['true', { cwd: '/no/such/folder' }, 'bad_cwd', 'ENOENT'],
      ['true', { cwd: '/etc/passwd' }, 'bad_cwd', 'ENOTDIR'],
      ['true', { user: 'no-such-user' }, 'user_setup_failed', null],
      ['true', { user: 'root:no-such-group' }, 'user_setup_failed', null],
      // The kernel takes this id for 'leave it as it is'.
      ['true', { user: '4294967295' }, 'user_setup_failed', null],
      ['true', { user: 'root:4294967295' }, 'user_setup_failed', null],
      ['true', { args: ['x'.repeat(200_000)] }, 'bad_args', 'E2BIG'],
      [
        'true',
        { rlimits: [{ resource: 'nofile', soft: 2 ** 40, hard: 2 ** 40 }] },
        'resource_limit',
        'EPERM',
      ],
    ];
    for (const [cmd, options, kind, errnoName] of cases) {
      const { end } = await run(session, cmd, [], options);
      assert.equal(end.type, 'core.exec.failed', cmd);
      assert.deepEqual(
        [end.payload['kind'], end.payload['errno_name']],
        [kind, errnoName],
        JSON.stringify([cmd, end.payload]),
      );
      assert.ok((end.payload['message'] as string).length > 3);
    }
    assert.equal((await shell(session, 'echo alive')).stdout, 'alive\n');
  });
}

test('a malformed exec request is answered with invalid_payload', async (t) => {
  const session = await (await Engine.start(t)).session();
  const bad: Record<string, unknown>[] = [
    {},
    { cmd: 5 },
    { cmd: '' },
    { cmd: 'true', args: 'no list' },
    { cmd: 'true\0' },
    { cmd: 'true', rows: 70_000 },
    { cmd: 'true', rlimits: [{ resource: 'bogus', soft: 1, hard: 1 }] },
    { cmd: 'true', rlimits: [{ resource: 'nofile', soft: 2, hard: 1 }] },
  ];
  for (const payload of bad) {
    const answer = await session.call('core.exec.request', payload);
    assert.deepEqual(
      [answer.type, answer.payload['kind']],
      ['core.error', 'invalid_payload'],
      JSON.stringify(payload),
    );
  }
});

test('users are names, numbers and groups of the sandbox', async (t) => {
  const session = await (await Engine.start(t)).session();
  const who = async (user: string): Promise<string> =>
    (await shell(session, 'echo $(id -u) $(id -g) $(id -G) $HOME', { user })).stdout.trim();
  assert.equal(await who('root'), '0 0 0 /root');
  assert.equal(await who('daemon'), '1 1 1 /usr/sbin');
  assert.equal(await who('65534'), '65534 65534 65534 /nonexistent');
  assert.equal(await who('daemon:adm'), '1 4 4 /usr/sbin');
  assert.equal(await who('4242:4343'), '4242 4343 4343 /');
  assert.equal(await who('4242'), '4242 0 0 /');
});

test('defaults of the sandbox apply where the call says nothing', async (t) => {
  const engine = await Engine.start(t, {
    configure: {
      env: ['A=config', 'B=config', 'PATH=/usr/bin:/bin'],
      user: 'daemon',
      workdir: '/usr',
      shell: '/bin/dash',
      path_prefix: '/.svc/scripts',
      rlimits: [{ resource: 'nofile', soft: 77, hard: 99 }],
    },
  });
  const session = await engine.session();
  const script = 'echo $A $B $PATH $PWD $(id -un) $SHELL $(ulimit -Sn) $(ulimit -Hn)';
  assert.equal(
    (await shell(session, script)).stdout,
    'config config /.svc/scripts:/usr/bin:/bin /usr daemon /bin/dash 77 99\n',
  );
  const own = await shell(session, script, {
    env: ['B=call', 'PATH=/bin'],
    cwd: '/tmp',
    user: 'root',
    rlimits: [{ resource: 'nofile', soft: 55, hard: 66 }],
  });
  assert.equal(own.stdout, 'config call /.svc/scripts:/bin /tmp root /bin/dash 55 66\n');
});

test('the environment holds nothing of svc-init, and a default PATH', async (t) => {
  const session = await (await Engine.start(t)).session();
  const { stdout } = await run(session, 'env');
  assert.deepEqual(stdout.trim().split('\n').toSorted(), [
    'HOME=/root',
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  ]);
});

test('a process sees only its three standard descriptors', async (t) => {
  const session = await (await Engine.start(t)).session();
  const id = session.newId();
  session.send(id, 'core.exec.request', { cmd: 'sleep', args: ['100'] });
  const { stdout } = await shell(session, 'ls /proc/self/fd');
  assert.deepEqual(
    stdout.trim().split('\n'),
    ['0', '1', '2', '3'],
    'the fourth is ls looking at its own folder',
  );
  session.send(id, 'core.exec.signal', { signal: 9 });
  await collect(session, id);
});

test('stdin arrives, and its end ends the reader', async (t) => {
  const session = await (await Engine.start(t)).session();
  const id = session.newId();
  session.send(id, 'core.exec.request', { cmd: 'cat' });
  session.send(id, 'core.exec.stdin', { data: Buffer.from('one ') });
  session.send(id, 'core.exec.stdin', { data: Buffer.alloc(3_000_000, 'x') });
  session.send(id, 'core.exec.stdin', { data: Buffer.alloc(0) });
  session.send(id, 'core.exec.stdin', { data: Buffer.alloc(0) });
  const { stdout, end } = await collect(session, id);
  assert.equal(stdout.length, 3_000_004);
  assert.equal(end.payload['code'], 0);
  session.send(id, 'core.exec.stdin', { data: Buffer.from('late') });
  assert.equal((await session.call('core.ping')).type, 'core.pong');
});

test('writing to a closed stdin is reported and does not end the process', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const id = session.newId();
  const go = join(engine.dir, 'go');
  session.send(id, 'core.exec.request', {
    cmd: '/bin/sh',
    args: ['-c', `exec <&-; echo closed; until [ -e ${go} ]; do sleep 0.02; done`],
  });
  await session.takeType('core.exec.stdout', id);
  session.send(id, 'core.exec.stdin', { data: Buffer.from('x') });
  const error = await session.takeType('core.exec.stdin.error', id);
  assert.equal(error.payload['errno_name'], 'EPIPE');
  writeFileSync(go, '');
  assert.deepEqual((await collect(session, id)).end.payload, { code: 0, signal: null, reason: 'exit' });
});

test('a signal reaches the whole group', async (t) => {
  const session = await (await Engine.start(t)).session();
  const id = session.newId();
  session.send(id, 'core.exec.request', { cmd: '/bin/sh', args: ['-c', 'sleep 1000 & echo $!; wait'] });
  const child = Buffer.from((await session.takeType('core.exec.stdout', id)).payload['data'] as Uint8Array)
    .toString()
    .trim();
  session.send(id, 'core.exec.signal', { signal: 9 });
  assert.deepEqual((await collect(session, id)).end.payload, { code: -1, signal: 9, reason: 'signal' });
  await waitUntil(
    async () => (await shell(session, `kill -0 ${child}`)).end.payload['code'] !== 0,
    'the grandchild is gone',
  );
});

test('a background child that holds stdout neither hides the exit nor loses output', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const quiet = await shell(session, 'sleep 1000 & echo hello');
  assert.equal(quiet.stdout, 'hello\n');
  assert.equal(quiet.end.payload['code'], 0);
  const beat = join(engine.dir, 'beat');
  const loop = `while :; do echo x; echo >> ${beat}; sleep 0.02; done`;
  const noisy = await shell(session, `${loop} & echo first`);
  assert.match(noisy.stdout, /first/);
  // It still runs, and did not die of a closed pipe.
  const beats = () => (existsSync(beat) ? statSync(beat).size : 0);
  const before = beats();
  await waitUntil(() => beats() > before + 5, 'the child goes on');
});

test('500 processes at once all deliver their output', async (t) => {
  const engine = await Engine.start(t, { binary: releaseBinary });
  const session = await engine.session();
  const all = await Promise.all(Array.from({ length: 500 }, (_, i) => run(session, 'echo', [String(i)])));
  all.forEach((outcome, i) => assert.deepEqual([outcome.stdout, outcome.end.payload['code']], [`${i}\n`, 0]));
});

test('large output is complete and in order', async (t) => {
  const session = await (await Engine.start(t)).session();
  const { stdout } = await shell(session, 'seq 1 300000');
  assert.equal(stdout, `${Array.from({ length: 300_000 }, (_, i) => i + 1).join('\n')}\n`);
});
