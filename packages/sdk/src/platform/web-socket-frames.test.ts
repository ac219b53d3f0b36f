import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeHead, FrameReader, OPCODE } from './web-socket-frames.ts';

/** As a server sends it: not masked. */
function serverFrame(opcode: number, payload: Uint8Array, isLast = true): Uint8Array {
  const masked = encodeHead(opcode, payload.length, new Uint8Array(4));
  const head = masked.subarray(0, masked.length - 4);
  head[0] = (isLast ? 0x80 : 0) | opcode;
  head[1] = (head[1] ?? 0) & 0x7f;
  return Buffer.concat([head, payload]);
}

function cut(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let position = 0;
  for (const size of sizes) {
    pieces.push(bytes.subarray(position, position + size));
    position += size;
  }
  return [...pieces, bytes.subarray(position)];
}

const payloads = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.integer({ min: 65_530, max: 65_540 }).map((length) => new Uint8Array(length).fill(length & 0xff)),
);

test('messages come out as they went in, however the bytes are cut', () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 70_000 })));
  fc.assert(
    fc.property(fc.array(payloads, { maxLength: 6 }), sizes, (messages, cuts) => {
      const reader = new FrameReader();
      const received: Uint8Array[] = [];
      const bytes = Buffer.concat(messages.map((message) => serverFrame(OPCODE.binary, message)));
      for (const piece of cut(bytes, cuts)) received.push(...reader.push(piece).data);
      assert.ok(Buffer.concat(received).equals(Buffer.concat(messages)));
    }),
    { numRuns: 200 },
  );
});

test('pings between the parts of a message are seen, text is not', () => {
  const reader = new FrameReader();
  const bytes = Buffer.concat([
    serverFrame(OPCODE.text, Buffer.from('not for us')),
    serverFrame(OPCODE.binary, Buffer.from('one '), false),
    serverFrame(OPCODE.ping, Buffer.from('are you there')),
    serverFrame(OPCODE.continuation, Buffer.from('message')),
    serverFrame(OPCODE.close, Buffer.of(0x03, 0xe9)),
  ]);
  const { data, control } = reader.push(bytes);
  assert.equal(Buffer.concat(data).toString(), 'one message');
  assert.deepEqual(
    control.map(({ opcode, payload }) => [opcode, Buffer.from(payload).toString('latin1')]),
    [
      [OPCODE.ping, 'are you there'],
      [OPCODE.close, '\u0003\u00e9'],
    ],
  );
});

test('a masked frame and a control frame that is too long are refused', () => {
  assert.throws(() => new FrameReader().push(encodeHead(OPCODE.binary, 1, new Uint8Array(4))), /masked/);
  const long = serverFrame(OPCODE.ping, new Uint8Array(126));
  assert.throws(() => new FrameReader().push(long), /too long/);
});
