import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { applyMask } from './web-socket-mask.ts';

test('a mask is the one of the standard, wherever the bytes lie in memory and in the payload', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 70 }),
      fc.uint8Array({ minLength: 4, maxLength: 4 }),
      fc.integer({ min: 0, max: 7 }),
      fc.integer({ min: 0, max: 2 ** 31 }),
      (bytes, mask, offset, position) => {
        const memory = new Uint8Array(offset + bytes.length);
        memory.set(bytes, offset);
        const view = memory.subarray(offset);
        applyMask(view, mask, position);
        assert.deepEqual(
          view,
          bytes.map((byte, index) => byte ^ (mask[(index + position) % 4] ?? 0)),
        );
      },
    ),
  );
});
