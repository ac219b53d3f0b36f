import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import fc from 'fast-check';
import type { Channel, Payload } from './channel.ts';
import { Engine, run } from './engine.ts';

interface Held {
  stdout: Buffer;
  stderr: Buffer;
}

/** Moves output frames of a key into `held`, checking that each starts where the last one ended. */
function absorb(control: Channel, key: string, held: Held): void {
  const mine = control.frames.filter(
    (frame) => frame.type === 'svc.process.output' && frame.payload['key'] === key,
  );
  for (const { payload } of mine) {
    const stream = payload['stream'] as keyof Held;
    assert.equal(payload['offset'], held[stream].length, 'no byte is missing and none comes twice');
    held[stream] = Buffer.concat([held[stream], payload['data'] as Uint8Array]);
  }
  control.frames.splice(0, control.frames.length, ...control.frames.filter((frame) => !mine.includes(frame)));
}

const nothing = (): Held => ({ stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) });

async function start(control: Channel, key: string, script: string, options: Payload = {}): Promise<number> {
  const answer = await control.call('svc.process.start', {
    key,
    cmd: '/bin/sh',
    args: ['-c', script],
    ...options,
  });
  assert.equal(answer.type, 'svc.process.started', JSON.stringify(answer.payload));
  return answer.payload['pid'] as number;
}

async function finish(control: Channel, key: string, held: Held): Promise<Payload> {
  for (;;) {
    const frame = await control.take(
      (one) => ['svc.process.exited', 'svc.process.output'].includes(one.type) && one.payload['key'] === key,
      `the end of ${key}`,
    );
    if (frame.type === 'svc.process.exited') {
      absorb(control, key, held);
      return frame.payload;
    }
    control.frames.unshift(frame);
    absorb(control, key, held);
    control.send(0, 'svc.process.ack', { key, stdout: held.stdout.length, stderr: held.stderr.length });
  }
}

test('a durable process reports its output by offset, then its end', async (t) => {
  const control = await (await Engine.start(t)).control();
  const pid = await start(control, 'job', 'echo out; echo err >&2; exit 5');
  const held = nothing();
  const state = await finish(control, 'job', held);
  assert.deepEqual([held.stdout.toString(), held.stderr.toString()], ['out\n', 'err\n']);
  const { started_at_ns: startedAt, exited_at_ns: exitedAt, ...rest } = state;
  assert.deepEqual(rest, {
    key: 'job',
    pid,
    state: 'exited',
    code: 5,
    signal: null,
    reason: 'exit',
    stdout: 4,
    stderr: 4,
    tty: false,
  });
  assert.ok((exitedAt as bigint) >= (startedAt as bigint));
});

test('a durable process that cannot start says why and leaves no trace', async (t) => {
  const engine = await Engine.start(t);
  const control = await engine.control();
  for (let i = 0; i < 2; i++) {
    const failed = await control.call('svc.process.start', { key: 'a', cmd: 'no-such-program' });
    assert.deepEqual(
      [failed.type, failed.payload['kind'], failed.payload['stage']],
      ['svc.process.failed', 'not_found', 'exec'],
    );
  }
  await start(control, 'a', 'sleep 100');
  assert.equal(
    (await control.call('svc.process.start', { key: 'a', cmd: 'true' })).payload['kind'],
    'invalid_session',
  );
  assert.equal(
    (await control.call('svc.process.start', { key: '', cmd: 'true' })).payload['kind'],
    'invalid_payload',
  );
});

test('output beyond the ring waits in the producer until it is acknowledged', async (t) => {
  const engine = await Engine.start(t);
  const control = await engine.control();
  const size = 3_000_000;
  await start(control, 'big', `head -c ${size} /dev/zero; echo end >&2`);
  const held = nothing();
  // Without acknowledgement the ring fills and stays full.
  await waitUntil(
    () => (absorb(control, 'big', held), held.stdout.length === 256 * 1024),
    'the ring is full',
  );
  control.send(0, 'svc.process.ack', { key: 'big', stdout: held.stdout.length, stderr: 0 });
  const state = await finish(control, 'big', held);
  assert.deepEqual([held.stdout.length, held.stderr.toString(), state['stdout']], [size, 'end\n', size]);
});

test('after a reconnect the engine gets exactly the missing output, and the end again', async (t) => {
  const engine = await Engine.start(t);
  let control = await engine.control();
  const held = nothing();
  await start(control, 'job', 'for i in $(seq 1 2000); do echo line $i; done; echo done >&2; exit 3');
  await waitUntil(() => (absorb(control, 'job', held), held.stdout.length > 0), 'some output');
  for (let round = 0; round < 3; round++) {
    await engine.goAway();
    await engine.listen();
    const hello = await engine.hello();
    control = await engine.control();
    const [state] = hello['processes'] as Payload[];
    assert.equal(state?.['key'], 'job');
    const answer = await control.call('svc.process.attach', {
      key: 'job',
      stdout: held.stdout.length,
      stderr: held.stderr.length,
    });
    assert.equal(answer.type, 'svc.process.attached');
    assert.equal((await finish(control, 'job', held))['code'], 3);
  }
  assert.equal(
    held.stdout.toString(),
    `${Array.from({ length: 2000 }, (_, i) => `line ${i + 1}`).join('\n')}\n`,
  );
  assert.equal(held.stderr.toString(), 'done\n');
  const past = await control.call('svc.process.attach', { key: 'job', stdout: 0, stderr: 0 });
  assert.equal(past.payload['kind'], 'invalid_payload', 'acknowledged bytes are gone');
  const beyond = await control.call('svc.process.attach', {
    key: 'job',
    stdout: held.stdout.length + 1,
    stderr: 5,
  });
  assert.equal(beyond.payload['kind'], 'invalid_payload');
});

const countable = Buffer.from(Array.from({ length: 120_000 }, (_, i) => i + 1).join('\n'));

interface Break {
  /** How much output the engine takes before it goes away. */
  readonly after: number;
  /** Which part of it the engine had acknowledged. */
  readonly ack: number;
  /** Which part of the rest it had kept: it attaches at the end of that. */
  readonly kept: number;
}

/** Takes output until the break, loses the connection and what was not kept, and attaches again. */
async function breakOff(
  engine: Engine,
  key: string,
  held: Held,
  size: number,
  { after, ack, kept }: Break,
): Promise<void> {
  const before = await engine.control();
  // Attaching counts as acknowledging what came before.
  const acked = { stdout: held.stdout.length, stderr: held.stderr.length };
  await waitUntil(() => {
    absorb(before, key, held);
    acked.stdout = Math.max(acked.stdout, Math.floor(held.stdout.length * ack));
    acked.stderr = Math.max(acked.stderr, Math.floor(held.stderr.length * ack));
    before.send(0, 'svc.process.ack', { key, ...acked });
    const isOver = before.frames.some(
      (frame) => frame.type === 'svc.process.exited' && frame.payload['key'] === key,
    );
    return (
      isOver || held.stdout.length >= Math.min(after, size) || held.stdout.length - acked.stdout >= 262_144
    );
  }, 'enough output for the break');
  // The answer to a later request shows that the acknowledgements were read.
  await before.call('svc.process.attach', { key: 'none', stdout: 0, stderr: 0 });
  await engine.goAway();
  absorb(before, key, held);
  for (const stream of ['stdout', 'stderr'] as const) {
    const end = acked[stream] + Math.floor((held[stream].length - acked[stream]) * kept);
    held[stream] = held[stream].subarray(0, end);
  }
  await engine.listen();
  await engine.hello();
  const answer = await (
    await engine.control()
  ).call('svc.process.attach', {
    key,
    stdout: held.stdout.length,
    stderr: held.stderr.length,
  });
  assert.equal(answer.type, 'svc.process.attached', JSON.stringify(answer.payload));
}

test('no byte is lost or repeated, wherever the connection breaks and with any acknowledgements', async (t) => {
  const engine = await Engine.start(t);
  await engine.hello();
  let run = 0;
  const part = fc.double({ min: 0, max: 1, noNaN: true });
  const breaks = fc.array(fc.record({ after: fc.integer({ min: 0, max: 500_000 }), ack: part, kept: part }), {
    maxLength: 4,
  });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 600_000 }), breaks, async (size, all) => {
      const key = `run-${run++}`;
      const held = nothing();
      const script = `seq 1 1000000 | head -c ${size}; seq 1 1000000 | head -c ${size >> 3} >&2`;
      await start(await engine.control(), key, script);
      for (const one of all) await breakOff(engine, key, held, size, one);
      const control = await engine.control();
      control.send(0, 'svc.process.ack', { key, stdout: held.stdout.length, stderr: held.stderr.length });
      const state = await finish(control, key, held);
      assert.ok(held.stdout.equals(countable.subarray(0, size)), 'stdout is what was written');
      assert.ok(held.stderr.equals(countable.subarray(0, size >> 3)), 'stderr is what was written');
      assert.deepEqual([state['stdout'], state['stderr']], [size, size >> 3]);
    }),
    { numRuns: 15, interruptAfterTimeLimit: 30_000 },
  );
});

test('a durable process sees the end of its input at once', async (t) => {
  const control = await (await Engine.start(t)).control();
  await start(control, 'cat', 'cat; echo over');
  const held = nothing();
  await finish(control, 'cat', held);
  assert.equal(held.stdout.toString(), 'over\n');
});

test('a durable terminal is all stdout', async (t) => {
  const control = await (await Engine.start(t)).control();
  const held = nothing();
  await start(control, 'tty', 'stty size; echo err >&2', { tty: true, rows: 11, cols: 22 });
  assert.equal((await finish(control, 'tty', held))['tty'], true);
  assert.equal(held.stdout.toString(), '11 22\r\nerr\r\n');
  assert.equal(held.stderr.length, 0);
});

test('durable processes survive clients and svc.drop', async (t) => {
  const engine = await Engine.start(t);
  const control = await engine.control();
  const pid = await start(control, 'job', 'exec sleep 1000');
  const session = await engine.session();
  control.send(0, 'svc.drop', { connection: session.number });
  await session.untilEnded();
  await run(await engine.session(), 'kill', [String(pid)]);
  assert.deepEqual((await finish(control, 'job', nothing()))['signal'], 15);
});
