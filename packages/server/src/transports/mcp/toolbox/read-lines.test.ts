import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_SHOWN_LENGTH } from './bounded-text.ts';
import { readLines } from './read-lines.ts';

const ALL = { offset: 1, limit: Number.MAX_SAFE_INTEGER };

async function* inPieces(text: string, length: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

test('lines come as they are, however the file is cut into pieces', async () => {
  const text = fc
    .array(fc.constantFrom('a', 'ü', '\n', '\r\n', '🙂', ''), { maxLength: 40 })
    .map((parts) => parts.join(''));
  await fc.assert(
    fc.asyncProperty(
      text,
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 9 }),
      async (whole, size, offset) => {
        const lines = whole.match(/[^\n]*\n|[^\n]+$/g) ?? [];
        assert.equal((await readLines(inPieces(whole, size), ALL)).text, whole);
        const part = await readLines(inPieces(whole, size), { offset, limit: 2 });
        const expected = lines.slice(offset - 1, offset + 1);
        assert.equal(part.text, expected.join(''));
        assert.equal(part.lastLine, expected.length === 0 ? null : offset + expected.length - 1);
        assert.equal(part.hasMore, expected.length > 0 && lines.length > offset + 1);
      },
    ),
  );
});

test('no more is shown than fits, and whole lines are', async () => {
  const line = `${'x'.repeat(999)}\n`;
  const lines = await readLines(inPieces(line.repeat(100), 65_536), ALL);
  assert.deepEqual([lines.lastLine, lines.hasMore, lines.isCut], [MAX_SHOWN_LENGTH / 1000, true, false]);
  const long = await readLines(inPieces('y'.repeat(1_000_000), 65_536), ALL);
  assert.deepEqual([long.text.length, long.hasMore, long.isCut], [MAX_SHOWN_LENGTH, true, true]);
  const behind = await readLines(inPieces(`${'y'.repeat(1_000_000)}\nend\n`, 65_536), {
    offset: 2,
    limit: 1,
  });
  assert.deepEqual([behind.text, behind.hasMore], ['end\n', false]);
});
