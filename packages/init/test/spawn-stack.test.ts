import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Channel, Payload } from './channel.ts';
import { Engine, releaseBinary, run, shell } from './engine.ts';

/** More than there are stacks: the others are forked. */
const MANY = 40;

test('many processes at once each get their own arguments, environment, user and folder', async (t) => {
  const engine = await Engine.start(t, { spawn: 'shared' });
  const session = await engine.session();
  const outcomes = await Promise.all(
    Array.from({ length: MANY }, (_, n) =>
      run(session, 'sh', ['-c', 'echo "$0 $OWN $PWD $(id -u)"', String(n)], {
        env: [`OWN=${n}`],
        cwd: n % 2 === 0 ? '/usr' : '/etc',
        user: n % 3 === 0 ? '65534' : null,
      }),
    ),
  );
  assert.deepEqual(
    outcomes.map(({ stdout }) => stdout),
    Array.from(
      { length: MANY },
      (_, n) => `${n} ${n} ${n % 2 === 0 ? '/usr' : '/etc'} ${n % 3 === 0 ? 65534 : 0}\n`,
    ),
  );
});

test('processes that fail give their stacks back', async (t) => {
  const engine = await Engine.start(t, { spawn: 'shared' });
  const session = await engine.session();
  for (let round = 0; round < 3; round++) {
    const outcomes = await Promise.all(
      Array.from({ length: MANY }, (_, n) => run(session, n % 2 === 0 ? 'no-such-program' : 'true')),
    );
    assert.deepEqual(
      outcomes.map(({ end }) => end.type),
      Array.from({ length: MANY }, (_, n) => (n % 2 === 0 ? 'core.exec.failed' : 'core.exec.exited')),
    );
  }
});

async function startStuck(session: Channel, key: string): Promise<void> {
  const request = { key, cmd: '/bin/sh', args: ['-c', 'echo $AGE; cat <&12'], stdin: true, stdin_fd: 12 };
  session.send(session.newId(), 'svc.detached.start', request);
}

/** `key: what it has printed`, of all that run. */
async function printed(session: Channel): Promise<string[]> {
  const { payload } = await session.call('svc.detached.list');
  return (payload['processes'] as Payload[]).map(({ key, stdout }) => `${String(key)}: ${String(stdout)}`);
}

test('processes that are stopped before their exec delay no other, and start with the configuration of their request', async (t) => {
  const engine = await Engine.start(t, {
    binary: releaseBinary,
    spawn: 'shared',
    profile: 'none',
    configure: { env: ['AGE=old'] },
  });
  const session = await engine.session();
  // A process whose input is elsewhere opens /dev/null: here it waits there for a writer.
  const fifo = `${engine.dir}/fifo`;
  assert.equal((await shell(session, `mkfifo ${fifo} && mount --bind ${fifo} /dev/null`)).stderr, '');
  const keys = Array.from({ length: MANY }, (_, n) => `stuck-${n}`);
  for (const key of keys) await startStuck(session, key);
  assert.equal((await session.call('core.ping')).type, 'core.pong');
  assert.equal((await shell(session, 'echo $AGE')).stdout, 'old\n');
  await engine.configure({ env: ['AGE=a much newer one'] });
  assert.equal((await shell(session, 'echo $AGE')).stdout, 'a much newer one\n');
  assert.deepEqual(await printed(session), []);
  session.send(session.newId(), 'core.exec.request', {
    cmd: 'sh',
    args: ['-c', `exec 3<>${fifo}; sleep 100`],
  });
  await waitUntil(async () => (await printed(session)).length === MANY, 'all have started');
  await waitUntil(
    async () => (await printed(session)).every((line) => line.endsWith(': 4')),
    'they print "old"',
  );
  assert.equal((await shell(session, 'echo alive')).stdout, 'alive\n');
});
