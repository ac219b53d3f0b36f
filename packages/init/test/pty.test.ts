import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Channel } from './channel.ts';
import { Engine, collect, shell } from './engine.ts';

async function typed(session: Channel, id: number, pattern: RegExp): Promise<string> {
  let seen = '';
  while (!pattern.test(seen)) {
    const frame = await session.take(
      (one) => one.id === id && one.type === 'core.exec.stdout',
      `${pattern} in ${JSON.stringify(seen)}`,
    );
    seen += Buffer.from(frame.payload['data'] as Uint8Array).toString();
  }
  return seen;
}

test('a terminal has the asked size, a TERM, and gives everything as stdout', async (t) => {
  const session = await (await Engine.start(t)).session();
  const outcome = await shell(session, 'stty size; echo $TERM; echo err >&2; tty', {
    tty: true,
    rows: 30,
    cols: 100,
  });
  assert.match(outcome.stdout, /^30 100\r\nxterm\r\nerr\r\n\/dev\/pts\/\d+\r\n$/);
  assert.equal(outcome.stderr, '');
  assert.deepEqual(outcome.end.payload, { code: 0, signal: null, reason: 'exit' });
});

test('TERM of the call is kept', async (t) => {
  const session = await (await Engine.start(t)).session();
  assert.equal((await shell(session, 'echo $TERM', { tty: true, env: ['TERM=vt100'] })).stdout, 'vt100\r\n');
});

test('a resize reaches the program, and Ctrl-C interrupts it', async (t) => {
  const session = await (await Engine.start(t)).session();
  const id = session.newId();
  const script =
    "trap 'echo got; stty size' WINCH; trap 'echo bye; exit 7' INT; echo ready; while :; do sleep 0.02; done";
  session.send(id, 'core.exec.request', { cmd: '/bin/sh', args: ['-c', script], tty: true });
  await typed(session, id, /ready/);
  session.send(id, 'core.exec.resize', { rows: 50, cols: 132 });
  await typed(session, id, /50 132/);
  session.send(id, 'core.exec.stdin', { data: Buffer.from([3]) });
  await typed(session, id, /bye/);
  assert.equal((await collect(session, id)).end.payload['code'], 7);
});

test('the end of stdin means nothing on a terminal; Ctrl-D does', async (t) => {
  const session = await (await Engine.start(t)).session();
  const id = session.newId();
  session.send(id, 'core.exec.request', { cmd: 'cat', tty: true });
  session.send(id, 'core.exec.stdin', { data: Buffer.alloc(0) });
  session.send(id, 'core.exec.stdin', { data: Buffer.from('still here\n') });
  await typed(session, id, /still here\r\nstill here/);
  session.send(id, 'core.exec.stdin', { data: Buffer.from([4]) });
  assert.equal((await collect(session, id)).end.payload['code'], 0);
});

test('a terminal of another user belongs to that user', async (t) => {
  const session = await (await Engine.start(t)).session();
  const { stdout } = await shell(session, 'stat -c %U $(tty) && echo ok > $(tty)', {
    tty: true,
    user: 'daemon',
  });
  assert.equal(stdout, 'daemon\r\nok\r\n');
});

test('a terminal whose program leaves a child behind still ends', async (t) => {
  const session = await (await Engine.start(t)).session();
  const { stdout, end } = await shell(session, "trap '' HUP; sleep 30 & echo started", { tty: true });
  assert.match(stdout, /started/);
  assert.equal(end.payload['code'], 0);
});

test('the last output of a terminal reaches a client that reads late', async (t) => {
  const engine = await Engine.start(t);
  const slow = await engine.session();
  slow.socket.pause();
  slow.send(slow.newId(), 'core.exec.request', { cmd: 'head', args: ['-c', '33554432', '/dev/zero'] });
  const other = await engine.session();
  await shell(other, 'sleep 0.5');
  const id = slow.newId();
  const pidFile = join(engine.dir, 'pid');
  const script = `seq 1 200; echo $$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}`;
  slow.send(id, 'core.exec.request', { cmd: '/bin/sh', args: ['-c', script], tty: true });
  await waitUntil(() => existsSync(pidFile), 'the program wrote it all');
  // Longer than svc-init waits, after the end of a program, for what may still come.
  const wait = `while kill -0 $(cat ${pidFile}) 2>/dev/null; do sleep 0.01; done; sleep 0.2`;
  await shell(other, wait);
  slow.socket.resume();
  const { stdout } = await collect(slow, id);
  assert.equal(stdout, `${Array.from({ length: 200 }, (_, i) => i + 1).join('\r\n')}\r\n`);
});

test('large output through a terminal is complete', async (t) => {
  const session = await (await Engine.start(t)).session();
  const { stdout } = await shell(session, 'seq 1 50000', { tty: true });
  assert.equal(stdout, `${Array.from({ length: 50_000 }, (_, i) => i + 1).join('\r\n')}\r\n`);
});
