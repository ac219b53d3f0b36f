import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { FrameError } from './frame-error.ts';
import { FrameSplitter } from './frame-splitter.ts';
import { encodeMessage, MAX_FRAME_BYTES } from './frame.ts';

const anyFrames = fc.array(
  fc.uint8Array({ maxLength: 300 }).map((data) => encodeMessage(data.length, 'core.fs.data', { data })),
  { maxLength: 12 },
);

/** Cuts the bytes at places chosen by the test run, empty chunks included. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const borders = places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b);
  return [...borders, bytes.length].map((end, index) =>
    bytes.slice(index === 0 ? 0 : borders[index - 1], end),
  );
}

function split(chunks: readonly Uint8Array[]): { frames: Uint8Array[]; error: unknown } {
  const splitter = new FrameSplitter();
  const frames: Uint8Array[] = [];
  try {
    for (const chunk of chunks) for (const frame of splitter.push(chunk)) frames.push(frame);
    return { frames, error: undefined };
  } catch (error) {
    return { frames, error };
  }
}

test('any chunking of a stream gives the same frames', () => {
  fc.assert(
    fc.property(anyFrames, fc.array(fc.nat(), { maxLength: 40 }), (frames, places) => {
      const result = split(cut(Buffer.concat(frames), places));
      assert.equal(result.error, undefined);
      assert.deepEqual(
        result.frames.map((frame) => Buffer.from(frame)),
        frames.map((frame) => Buffer.from(frame)),
      );
    }),
    { numRuns: 500 },
  );
});

test('frames that arrive byte by byte are the same as frames that arrive at once', () => {
  const frames = [0, 1, 200].map((size) =>
    encodeMessage(size, 'core.fs.data', { data: new Uint8Array(size) }),
  );
  const bytes = Buffer.concat(frames);
  const result = split([...bytes].map((byte) => Uint8Array.of(byte)));
  assert.deepEqual(
    result.frames.map((frame) => Buffer.from(frame)),
    frames.map((frame) => Buffer.from(frame)),
  );
});

test('random bytes end in a FrameError or in waiting for more, in any chunking alike', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), fc.array(fc.nat(), { maxLength: 10 }), (bytes, places) => {
      const whole = split([bytes]);
      const parts = split(cut(bytes, places));
      assert.ok(whole.error === undefined || whole.error instanceof FrameError);
      assert.equal(String(parts.error), String(whole.error));
      assert.deepEqual(
        parts.frames.map((frame) => Buffer.from(frame)),
        whole.frames.map((frame) => Buffer.from(frame)),
      );
    }),
    { numRuns: 1000 },
  );
});

test('a length that is not legal breaks the stream for good, after the frames before it', () => {
  const good = encodeMessage(1, 'core.ping');
  for (const length of [0, 4, MAX_FRAME_BYTES + 1, 0xffffffff]) {
    const splitter = new FrameSplitter();
    const bad = new Uint8Array(4);
    new DataView(bad.buffer).setUint32(0, length);
    const seen: Uint8Array[] = [];
    assert.throws(() => {
      for (const frame of splitter.push(Buffer.concat([good, bad]))) seen.push(frame);
    }, FrameError);
    assert.equal(seen.length, 1);
    assert.throws(() => [...splitter.push(good)], FrameError);
  }
});

test('a frame holds memory of exactly its size, inside one chunk and across chunks', () => {
  const frame = encodeMessage(1, 'core.exec.stdout', { data: new Uint8Array(256 * 1024) });
  const parts = [0, 1, 2, 3, 4].map((part) => frame.slice(part * 65536, (part + 1) * 65536));
  for (const chunks of [[Buffer.concat([frame, frame])], [...parts, ...parts]]) {
    const sizes = split(chunks).frames.map((each) => each.buffer.byteLength);
    assert.deepEqual(sizes, [frame.length, frame.length]);
  }
});

test('frames stay what they are when their chunks are overwritten', () => {
  fc.assert(
    fc.property(anyFrames, fc.array(fc.nat(), { maxLength: 40 }), (frames, places) => {
      const splitter = new FrameSplitter();
      const seen = cut(Buffer.concat(frames), places).flatMap((chunk) => {
        const found = [...splitter.push(chunk)];
        chunk.fill(0xee);
        return found;
      });
      assert.deepEqual(
        seen.map((frame) => Buffer.from(frame)),
        frames.map((frame) => Buffer.from(frame)),
      );
    }),
    { numRuns: 200 },
  );
});
