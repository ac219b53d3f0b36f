import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Process, ServerEvent } from '@svc/contract/rest';
import { latestOffset, readOutput } from './process-output.ts';

const RUNNING = { exit: null } as Process;
const OVER = { exit: { code: 0 } } as Process;

async function* events(...all: readonly ServerEvent[]): AsyncGenerator<ServerEvent> {
  yield* all;
}

const output = (stream: 'stdout' | 'stderr', bytes: Uint8Array): ServerEvent => ({
  event: 'output',
  data: { stream, offset: 0, data: Buffer.from(bytes).toString('base64') },
});
const end = (data: Process): ServerEvent => ({ event: 'end', data });

test('a character that is not whole yet is left for the next answer', async () => {
  const bytes = Buffer.from('aü🙂');
  for (let cut = 0; cut <= bytes.length; cut++) {
    const first = await readOutput(events(output('stdout', bytes.subarray(0, cut)), end(RUNNING)), '0-0');
    const [next = 0] = first.nextOffset.split('-').map(Number);
    const second = await readOutput(
      events(output('stdout', bytes.subarray(next)), end(OVER)),
      first.nextOffset,
    );
    assert.equal(first.stdout + second.stdout, 'aü🙂', `cut at ${cut}`);
    assert.equal(second.nextOffset, `${bytes.length}-0`);
  }
});

test('an answer is bounded, and the next one goes on where it ended', async () => {
  const bytes = Buffer.alloc(70_000, 'x');
  const read = await readOutput(events(output('stderr', bytes), end(OVER)), '5-7');
  assert.deepEqual([read.stderr.length, read.nextOffset, read.hasMore], [30_000, '5-30007', true]);
});

test('dropped messages are reported, and skipped', async () => {
  const dropped = { event: 'dropped', data: { stream: 'stdout', from: 0, to: 100 } };
  const read = await readOutput(events(dropped, output('stdout', Buffer.from('new')), end(RUNNING)), '0-0');
  assert.deepEqual([read.droppedBytes, read.stdout, read.nextOffset], [100, 'new', '103-0']);
});

test('the latest output is what fits of both streams', () => {
  const offsetOf = (stdout: number, stderr: number) =>
    latestOffset({ stdout_bytes: stdout, stderr_bytes: stderr } as Process);
  assert.equal(offsetOf(10, 20), '0-0');
  assert.equal(offsetOf(100_000, 10), '70010-0');
  assert.equal(offsetOf(10, 100_000), '0-70010');
  assert.equal(offsetOf(100_000, 100_000), '85000-85000');
});
