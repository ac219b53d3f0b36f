import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ConnectError } from '../wire/connect-error.ts';
import { encodeEnd, encodeEnvelope, readEnvelopes } from './envelopes.ts';

const MAX_BYTES = 1000;

async function* pieces(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (const size of sizes) {
    yield bytes.subarray(at, (at += size));
    await Promise.resolve();
  }
  yield bytes.subarray(at);
}

test('messages are read however their bytes are cut, up to the end', async () => {
  const messages = fc.array(fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(messages, fc.array(fc.nat(9)), fc.boolean(), async (given, sizes, hasEnd) => {
      const parts = given.map((message) => encodeEnvelope(message));
      const bytes = Buffer.concat(hasEnd ? [...parts, encodeEnd(null), Buffer.from('ignored')] : parts);
      const read = await Array.fromAsync(readEnvelopes(pieces(bytes, sizes), 100_000));
      assert.deepEqual(JSON.stringify(read), JSON.stringify(given));
    }),
  );
});

test('any other bytes end in an error of Connect, never in another', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 40 }), async (bytes) => {
      try {
        await Array.fromAsync(readEnvelopes(pieces(Buffer.from(bytes), []), MAX_BYTES));
      } catch (error) {
        assert.ok(error instanceof ConnectError, String(error));
      }
    }),
  );
});
