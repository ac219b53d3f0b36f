import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeMessage, FrameError, MAX_FRAME_BYTES } from '@svc/contract/frames';
import * as fc from 'fast-check';
import { ClientFrames } from './client-frames.ts';
import { describeExec } from './describe-exec.ts';

const anyFrame = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((data) => encodeMessage(3, 'core.exec.stdin', { data })),
  fc.string().map((path) => encodeMessage(4, 'core.fs.request', { op: { Stat: { path } } })),
  fc.string().map((cmd) => encodeMessage(5, 'core.exec.request', { cmd })),
);

function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const borders = places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b);
  return [...borders, bytes.length].map((end, index) =>
    bytes.slice(index === 0 ? 0 : borders[index - 1], end),
  );
}

test('however the bytes are cut, all of them pass in order, and each first frame of a session comes whole', () => {
  const cuts = fc.array(fc.nat(), { maxLength: 30 });
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 10 }), cuts, (frames, places) => {
      const bytes = Buffer.concat(frames);
      const follower = new ClientFrames();
      const pieces = cut(bytes, places).flatMap((chunk) => [...follower.push(chunk)]);
      assert.ok(Buffer.concat(pieces.map((piece) => piece.bytes)).equals(bytes));
      const sessions = pieces
        .filter(({ kind }) => kind === 'session')
        .map((piece) => Buffer.from(piece.bytes));
      assert.deepEqual(
        sessions,
        frames.filter((frame) => frame[8] === 2).map((frame) => Buffer.from(frame)),
      );
    }),
    { numRuns: 500 },
  );
});

test('random bytes pass or are refused as no frames, and nothing else happens', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 })), (chunks) => {
      const follower = new ClientFrames();
      try {
        for (const chunk of chunks) {
          for (const { kind, bytes } of follower.push(chunk)) if (kind === 'session') describeExec(bytes);
        }
      } catch (error) {
        assert.ok(error instanceof FrameError);
      }
    }),
    { numRuns: 2000 },
  );
});

test('a frame that is too long, too short or would stop the sandbox is refused', () => {
  const head = (length: number, flags: number) => {
    const bytes = Buffer.alloc(9);
    bytes.writeUInt32BE(length, 0);
    bytes.writeUInt8(flags, 8);
    return bytes;
  };
  for (const bad of [
    head(4, 0),
    head(MAX_FRAME_BYTES + 1, 0),
    head(0xffffffff, 2),
    encodeMessage(0, 'core.shutdown'),
  ]) {
    assert.throws(() => [...new ClientFrames().push(bad)], FrameError);
  }
});

test('only requests for processes are described, however their maps are laid out', () => {
  assert.equal(describeExec(encodeMessage(1, 'core.fs.request', { op: 'cmd' })), undefined);
  assert.equal(describeExec(encodeMessage(1, 'core.tcp.connect', { host: 'x', port: 1 })), undefined);
  const plain = { command: 'ls -l', user: 'bob', tty: true };
  const request = { args: ['-l'], env: ['A=secret'], tty: true, user: 'bob', cmd: 'ls' };
  assert.deepEqual(describeExec(encodeMessage(1, 'core.exec.request', request)), plain);
  // {t, p, v} instead of {v, t, p}.
  const encoded = Buffer.from(encodeMessage(1, 'core.exec.request', request));
  const moved = Buffer.concat([encoded.subarray(0, 10), encoded.subarray(13), encoded.subarray(10, 13)]);
  assert.deepEqual(describeExec(moved), plain);
});

test('the reader of requests agrees with a full decoder', () => {
  const anything = fc.oneof(
    fc.string(),
    fc.double(),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.uint8Array(),
    fc.array(fc.array(fc.string())),
    fc.dictionary(fc.string(), fc.string(), { noNullPrototype: true }),
  );
  const request = fc.record({
    extra: anything,
    cmd: fc.string({ unit: 'binary', maxLength: 40 }),
    args: fc.array(fc.string({ unit: 'binary', maxLength: 40 }), { maxLength: 4 }),
    env: fc.array(fc.string()),
    user: fc.option(fc.string({ unit: 'binary' })),
    tty: fc.boolean(),
  });
  fc.assert(
    fc.property(request, (payload) => {
      const described = describeExec(encodeMessage(1, 'core.exec.request', payload));
      const { cmd, args, user, tty } = payload;
      assert.deepEqual(described, { command: [cmd, ...args].join(' '), user, tty });
    }),
    { numRuns: 300 },
  );
});

test('a byte order mark is a character: of a word it is shown, and a key behind it is another key', () => {
  const mark = '\uFEFF';
  const request = {
    cmd: `${mark}ls`,
    args: [mark],
    [`${mark}args`]: ['never', 'given'],
    [`${mark}user`]: 'root',
  };
  const described = describeExec(encodeMessage(1, 'core.exec.request', request));
  assert.deepEqual(described, { command: `${mark}ls ${mark}`, user: null, tty: false });
  assert.equal(describeExec(encodeMessage(1, `${mark}core.exec.request`, { cmd: 'ls' })), undefined);
});

test('a request that names its type twice is refused, so that the server and the sandbox cannot read different types', () => {
  const encoded = Buffer.from(encodeMessage(1, 'core.exec.request', { cmd: 'ls' }));
  const second = Buffer.from([0x61, 0x74, 0x6f, ...Buffer.from('core.fs.request')]);
  const doubled = Buffer.concat([encoded, second]);
  doubled.writeUInt8(0xa4, 9);
  doubled.writeUInt32BE(doubled.length - 4, 0);
  assert.throws(() => describeExec(doubled), FrameError);
});

test('a command of half a million words is described by its first ones', () => {
  const request = { cmd: 'x', args: Array.from({ length: 400_000 }, () => 'y') };
  assert.equal(describeExec(encodeMessage(1, 'core.exec.request', request))?.command.length, 257);
});
