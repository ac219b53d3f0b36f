import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PooledChunks } from './pooled-chunks.ts';

/** As a socket does: into the buffer that it was given last. */
function receive(chunks: PooledChunks, text: string): boolean {
  const buffer = chunks.nextBuffer();
  const { written } = new TextEncoder().encodeInto(text, buffer);
  return chunks.take(buffer.subarray(0, written));
}

async function readText(chunks: PooledChunks): Promise<string | undefined> {
  const chunk = await chunks.read();
  return chunk === undefined ? undefined : new TextDecoder().decode(chunk);
}

test('two chunks are held, then the source waits until the reader asks for the one after the first', async () => {
  let resumed = 0;
  const chunks = new PooledChunks(
    () => void (resumed += 1),
    (bytes) => Buffer.allocUnsafeSlow(bytes),
  );
  assert.equal(receive(chunks, 'one'), true);
  assert.equal(receive(chunks, 'two'), false);
  assert.equal(await readText(chunks), 'one');
  assert.equal(resumed, 0, 'the first one is with its reader');
  assert.equal(await readText(chunks), 'two');
  assert.equal(resumed, 1);
  assert.equal(receive(chunks, 'three'), false, 'the second one is still with its reader');
  assert.equal(await readText(chunks), 'three');
});

test('two buffers are filled in turn, and a buffer in use is never filled', async () => {
  const chunks = new PooledChunks(
    () => undefined,
    (bytes) => Buffer.allocUnsafeSlow(bytes),
  );
  const seen = new Set<ArrayBufferLike>();
  receive(chunks, '0');
  for (let index = 1; index < 10; index++) {
    const lent = await chunks.read();
    receive(chunks, String(index));
    assert.equal(new TextDecoder().decode(lent), String(index - 1), 'what is lent stays as it is');
    seen.add(lent?.buffer ?? new ArrayBuffer(0));
  }
  assert.equal(seen.size, 2);
});

test('the buffers are small until one of them was filled', async () => {
  const sizes: number[] = [];
  const chunks = new PooledChunks(
    () => undefined,
    (bytes) => {
      sizes.push(bytes);
      return Buffer.allocUnsafeSlow(bytes);
    },
  );
  for (let index = 0; index < 5; index++) {
    receive(chunks, String(index));
    await chunks.read();
  }
  const [first = 0] = sizes;
  assert.deepEqual(sizes, [first, first]);
  assert.ok(first <= 16 * 1024, `${first} bytes for a connection that has received 5`);
  const full = 'x'.repeat(first);
  receive(chunks, full);
  assert.equal(receive(chunks, 'behind it'), false);
  assert.equal(await readText(chunks), full);
  assert.equal(await readText(chunks), 'behind it');
  for (let index = 0; index < 5; index++) {
    receive(chunks, String(index));
    assert.equal(await readText(chunks), String(index));
  }
  const big = 256 * 1024;
  assert.deepEqual(sizes, [first, first, big, big]);
});

test('chunks before the end are read before it, and the end wakes a waiting reader', async () => {
  const ended = new PooledChunks(
    () => undefined,
    (bytes) => Buffer.allocUnsafeSlow(bytes),
  );
  receive(ended, 'last');
  ended.finish();
  ended.finish(new Error('too late'));
  assert.equal(await readText(ended), 'last');
  assert.equal(await readText(ended), undefined);
  const broken = new PooledChunks(
    () => undefined,
    (bytes) => Buffer.allocUnsafeSlow(bytes),
  );
  const waiting = broken.read();
  broken.finish(new Error('broken'));
  await assert.rejects(waiting, /broken/);
});
