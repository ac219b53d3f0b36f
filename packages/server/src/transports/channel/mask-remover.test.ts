import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MaskRemover } from './mask-remover.ts';

interface Sent {
  readonly payload: Uint8Array;
  readonly mask: Uint8Array;
}

/** A binary message of a client. */
function encode({ payload, mask }: Sent): Buffer {
  const long = payload.length < 126 ? 0 : payload.length < 0x10000 ? 2 : 8;
  const head = Buffer.alloc(2 + long);
  head[0] = 0x82;
  head[1] = 0x80 | (long === 0 ? payload.length : long === 2 ? 126 : 127);
  if (long === 2) head.writeUInt16BE(payload.length, 2);
  if (long === 8) head.writeBigUInt64BE(BigInt(payload.length), 2);
  return Buffer.concat([head, mask, payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0))]);
}

function cut(bytes: Buffer, lengths: readonly number[]): readonly Buffer[] {
  const pieces: Buffer[] = [];
  let start = 0;
  for (let index = 0; start < bytes.length; index++) {
    const length = lengths[index % lengths.length] ?? 1;
    pieces.push(Buffer.from(bytes.subarray(start, start + length)));
    start += length;
  }
  return pieces;
}

/** Decodes like a server: unmasks each payload with the mask in its head. */
function decode(bytes: Buffer): readonly string[] {
  const payloads: string[] = [];
  for (let start = 0; start < bytes.length;) {
    const short = (bytes[start + 1] ?? 0) & 0x7f;
    const long = short < 126 ? 0 : short === 126 ? 2 : 8;
    const length =
      long === 0
        ? short
        : long === 2
          ? bytes.readUInt16BE(start + 2)
          : Number(bytes.readBigUInt64BE(start + 2));
    const mask = bytes.subarray(start + 2 + long, start + 6 + long);
    start += 6 + long + length;
    const payload = bytes.subarray(start - length, start);
    payloads.push(Buffer.from(payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0))).toString('hex'));
  }
  return payloads;
}

const sent = fc.record({
  payload: fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.integer({ min: 65_000, max: 70_000 }).map((length) => new Uint8Array(length).fill(length)),
  ),
  mask: fc.uint8Array({ minLength: 4, maxLength: 4 }),
});

test('messages are the same with their masks taken off, however the bytes come in', () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 20 });
  const frames = fc.array(sent, { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(frames, lengths, (all, cuts) => {
      const remover = new MaskRemover();
      const pieces = cut(Buffer.concat(all.map(encode)), cuts);
      for (const piece of pieces) remover.apply(piece);
      const expected = all.map(({ payload }) => Buffer.from(payload).toString('hex'));
      assert.deepEqual(decode(Buffer.concat(pieces)), expected);
    }),
    { numRuns: 60 },
  );
});

test('a mask that came whole is gone, and with it the work of taking it off', () => {
  const frame = encode({ payload: Buffer.from('payload'), mask: Uint8Array.of(1, 2, 3, 4) });
  new MaskRemover().apply(frame);
  assert.equal(frame.subarray(2).toString('latin1'), '\0\0\0\0payload');
});

test('bytes that are no frames of a client are left to the library, which refuses them', () => {
  const unmasked = Buffer.of(0x82, 3, 1, 2, 3);
  const before = Buffer.from(unmasked);
  new MaskRemover().apply(unmasked);
  assert.deepEqual(unmasked, before);
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 5 }), (chunks) => {
      const remover = new MaskRemover();
      for (const chunk of chunks) remover.apply(chunk);
    }),
  );
});
