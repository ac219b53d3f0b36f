import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MarkedOutput, MAX_OUTPUT_BYTES } from './marked-output.ts';

const MARK = Buffer.from('0123456789abcdef');

test('however a stream is cut into chunks, each call gets what came before its mark', async () => {
  const text = fc.string({ unit: 'grapheme-ascii', maxLength: 60 });
  // Beginnings of the mark are what could go wrong.
  const tricky = fc.oneof(text, fc.constantFrom('0', '0123456789abcde', '00123456789abcd'));
  await fc.assert(
    fc.asyncProperty(
      fc.array(tricky, { maxLength: 6 }),
      text,
      fc.infiniteStream(fc.integer({ min: 1, max: 20 })),
      async (parts, late, sizes) => {
        const before = parts.join('').replaceAll(MARK.toString(), '');
        const output = new MarkedOutput();
        const marked = output.expect(MARK);
        const stream = Buffer.concat([Buffer.from(before), MARK, Buffer.from(late)]);
        for (let start = 0; start < stream.length;) {
          const { value: size } = sizes.next() as { value: number };
          output.push(stream.subarray(start, start + size));
          start += size;
        }
        await marked;
        assert.deepEqual(output.take(), { text: before, isTruncated: false });
        output.push(Buffer.from(' idle'));
        output.end();
        assert.equal(output.take().text, `${late} idle`);
      },
    ),
  );
});

test('a mark is found however much came before it, and what comes after it is kept', async () => {
  const output = new MarkedOutput();
  const marked = output.expect(MARK);
  const chunk = Buffer.alloc(1 << 20, 'x');
  for (let count = 0; count < 12; count += 1) output.push(chunk);
  output.push(Buffer.concat([MARK, Buffer.from('next')]));
  await marked;
  const { text, isTruncated } = output.take();
  assert.equal(isTruncated, true);
  assert.ok(text.startsWith('x'.repeat(MAX_OUTPUT_BYTES)));
  assert.deepEqual(output.take(), { text: 'next', isTruncated: false });
});
