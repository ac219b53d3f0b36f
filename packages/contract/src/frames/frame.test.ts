import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, encode } from 'cborg';
import * as fc from 'fast-check';
import { decodeDataFrame } from './data-frame.ts';
import { FrameError } from './frame-error.ts';
import { decodeMessage, encodeMessage, MAX_FRAME_BYTES, readFrameHead } from './frame.ts';

const DATA_TYPES = [
  'core.exec.stdout',
  'core.exec.stderr',
  'core.exec.stdin',
  'core.fs.data',
  'core.tcp.data',
  'svc.udp.data',
];

const anyId = fc.integer({ min: 0, max: 0xffffffff });
const anyType = fc.oneof(fc.string({ maxLength: 40 }), fc.constantFrom(...DATA_TYPES, 'core.exec.exited'));
const anyValue = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.string(),
    fc.maxSafeInteger(),
    fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }),
    fc.boolean(),
    fc.constant(null),
    fc.uint8Array(),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.string(), tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value;
const anyPayload = fc.dictionary(fc.string(), anyValue, { maxKeys: 6, noNullPrototype: true });

/** The frame around any body, as a peer with another encoder would make it. */
function frameOf(body: Uint8Array, id = 1, flags = 0): Uint8Array {
  const frame = new Uint8Array(9 + body.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, body.length + 5);
  view.setUint32(4, id);
  view.setUint8(8, flags);
  frame.set(body, 9);
  return frame;
}

test('decoding what was encoded gives the same message', () => {
  fc.assert(
    fc.property(anyId, anyType, anyPayload, (id, type, payload) => {
      const message = decodeMessage(encodeMessage(id, type, payload));
      assert.equal(message.id, id);
      assert.equal(message.type, type);
      assert.equal(message.generation, 7);
      assert.deepEqual(message.payload, payload);
    }),
  );
});

test('the fast encoder of data frames says the same as the CBOR library', () => {
  const sizes = [0, 1, 23, 24, 200, 255, 256, 249, 250, 65527, 65528, 65535, 65536, 70000, 2 * 1024 * 1024];
  for (const type of DATA_TYPES) {
    for (const size of sizes) {
      const data = new Uint8Array(size).fill(size % 251);
      const general = frameOf(encode({ v: 7, t: type, p: encode({ data }) }), 77, 0);
      // The library sorts the keys of a map; the protocol's order is v, t, p. Only the order differs.
      const frame = encodeMessage(77, type, { data });
      assert.equal(frame.length, general.length);
      assert.deepEqual(decodeMessage(frame), decodeMessage(general));
    }
  }
});

test('the fast decoder of data frames takes the recorded layout and gives a view, not a copy', () => {
  const frame = encodeMessage(5, 'core.exec.stdout', { data: Uint8Array.of(1, 2, 3) });
  const hex = '000000290000000500a3617607617470636f72652e657865632e7374646f757461704aa1646461746143010203';
  assert.equal(Buffer.from(frame).toString('hex'), hex);
  const body = decodeDataFrame(frame);
  assert.ok(body);
  assert.equal(body.data.buffer, frame.buffer);
});

test('the fast decoder agrees with the CBOR library, also on damaged frames', () => {
  const damage = fc.record({ at: fc.nat(), to: fc.integer({ min: 0, max: 255 }) });
  // Mostly in the heads, where lengths are.
  const place = fc.oneof(fc.nat({ max: 40 }), fc.nat());
  let taken = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...DATA_TYPES),
      fc.uint8Array({ maxLength: 300 }),
      fc.array(fc.tuple(place, damage), { maxLength: 2 }),
      (type, data, damages) => {
        const frame = encodeMessage(1, type, { data });
        for (const [at, { to }] of damages) frame[9 + (at % (frame.length - 9))] = to;
        const body = decodeDataFrame(frame);
        if (body === undefined) return;
        taken += 1;
        const { v, t, p } = decode(frame.subarray(9));
        assert.deepEqual(
          [body.generation, body.type, { data: Uint8Array.from(body.data) }],
          [v, t, decode(p)],
        );
      },
    ),
    { numRuns: 5000 },
  );
  assert.ok(taken > 1000);
});

test('a data frame in another layout is decoded the general way', () => {
  const data = Uint8Array.of(9, 8, 7);
  const bodies = [
    encode({ v: 7, t: 'core.fs.data', p: encode({ data, extra: null }) }),
    encode({ v: 7, t: 'core.fs.data', p: encode({ data }), extra: 1 }),
    encode({ v: 300, t: 'core.fs.data', p: encode({ data }) }),
    Uint8Array.of(0xbf, ...encode({ v: 7, t: 'core.fs.data', p: encode({ data }) }).subarray(1), 0xff),
  ];
  for (const body of bodies) assert.deepEqual(decodeMessage(frameOf(body)).payload['data'], data);
});

test('bytes that are no message give a FrameError and nothing else', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (body) => {
      try {
        decodeMessage(frameOf(body));
      } catch (error) {
        assert.ok(error instanceof FrameError, String(error));
      }
    }),
    { numRuns: 2000 },
  );
});

test('a damaged message gives a FrameError or another message, never another error', () => {
  const damage = fc.record({ at: fc.nat(), to: fc.integer({ min: 0, max: 255 }) });
  fc.assert(
    fc.property(
      anyType,
      anyPayload,
      fc.array(damage, { minLength: 1, maxLength: 4 }),
      (type, payload, damages) => {
        const frame = encodeMessage(1, type, payload);
        for (const { at, to } of damages) frame[9 + (at % (frame.length - 9))] = to;
        try {
          decodeMessage(frame);
        } catch (error) {
          assert.ok(error instanceof FrameError, String(error));
        }
      },
    ),
    { numRuns: 1000 },
  );
});

test('a frame that would cost far more memory than its bytes is refused', () => {
  const arrays = new Uint8Array(1024 * 1024).fill(0x80);
  const head = Uint8Array.of(0x9a, 0x00, 0x10, 0x00, 0x00);
  assert.throws(
    () => decodeMessage(frameOf(Uint8Array.of(...head, ...arrays.subarray(0, 100_000)))),
    FrameError,
  );
  const body = new Uint8Array(head.length + arrays.length);
  body.set(head);
  body.set(arrays, head.length);
  assert.throws(() => decodeMessage(frameOf(body)), /at most 524288 values/);
  // Nesting deep enough to overflow the stack of a recursive decoder.
  assert.throws(() => decodeMessage(frameOf(new Uint8Array(200_000).fill(0x81))), FrameError);
});

test('a payload cannot reach the prototype of objects', () => {
  const message = decodeMessage(
    encodeMessage(1, 'constructor', JSON.parse('{"__proto__": {"polluted": 1}}')),
  );
  assert.equal(Reflect.get({}, 'polluted'), undefined);
  assert.equal(Reflect.get(message.payload, 'polluted'), undefined);
  assert.equal(message.flags, 0);
});

test('the flags follow from the type', () => {
  assert.equal(readFrameHead(encodeMessage(1, 'core.exec.exited', { code: 0 })).flags, 1);
  assert.equal(readFrameHead(encodeMessage(1, 'core.exec.request', { cmd: 'true' })).flags, 2);
  assert.equal(readFrameHead(encodeMessage(0, 'core.shutdown')).flags, 4);
  assert.equal(readFrameHead(encodeMessage(1, 'core.exec.stdout', { data: Uint8Array.of(1) })).flags, 0);
});

test('a frame that is too large, or has no legal id, is not encoded', () => {
  assert.throws(
    () => encodeMessage(1, 'core.fs.data', { data: new Uint8Array(MAX_FRAME_BYTES) }),
    RangeError,
  );
  assert.throws(() => encodeMessage(1, 'core.x', { text: 'x'.repeat(MAX_FRAME_BYTES) }), RangeError);
  for (const id of [-1, 0x100000000, 1.5, Number.NaN])
    assert.throws(() => encodeMessage(id, 'core.ping'), RangeError);
});

test('a frame whose length word lies is refused', () => {
  const frame = encodeMessage(1, 'core.ping');
  assert.throws(() => decodeMessage(frame.subarray(0, frame.length - 1)), FrameError);
  assert.throws(() => decodeMessage(new Uint8Array(3)), FrameError);
});
