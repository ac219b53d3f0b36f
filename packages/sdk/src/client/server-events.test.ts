import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readServerEvents } from './server-events.ts';

const STREAM = [
  ': connected\n\n',
  'event: log\nid: AA==\ndata: {"text":"grüße\\n"}\n\n',
  ': heartbeat\n\n',
  'event: log\ndata: {"a":\ndata: 1}\n\n',
  'event: end\r\ndata: {}\r\n\r\n',
  'event: cut\ndata: {"never":"ended"}\n',
].join('');

test('events come out whole, however the bytes are cut, and comments do not', async () => {
  const bytes = new TextEncoder().encode(STREAM);
  // A carriage return and its line feed stay together: our server sends none.
  const places = fc.array(fc.integer({ min: 0, max: STREAM.indexOf('event: end') }), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(places, async (cuts) => {
      const ends = [...cuts.toSorted((a, b) => a - b), bytes.length];
      async function* pieces() {
        let start = 0;
        for (const end of ends) {
          yield bytes.subarray(start, end);
          start = end;
        }
      }
      assert.deepEqual(await Array.fromAsync(readServerEvents(pieces())), [
        { event: 'log', id: 'AA==', data: { text: 'grüße\n' } },
        { event: 'log', id: null, data: { a: 1 } },
        { event: 'end', id: null, data: {} },
      ]);
    }),
  );
});
