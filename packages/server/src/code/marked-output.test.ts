import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MarkedOutput, MAX_OUTPUT_BYTES } from './marked-output.ts';

// Nothing that, behind a beginning of the other mark, would complete it.
const FIRST = Buffer.from('FEDCBA9876543210');
const MARK = Buffer.from('0123456789abcdef');
const SHOWN = Buffer.from('~~~~shown-mark~~');
/** Of another's unit. */
const THEIR_FIRST = Buffer.from('FEDCBA98<theirs>');
const THEIR_LAST = Buffer.from('01234567<theirs>');
const FAMILIES = { first: FIRST.subarray(0, 8), last: MARK.subarray(0, 8) };
const MARKS = { first: FIRST, last: MARK, shown: SHOWN };

/** The last mark and the text behind it, in pieces of that many bytes. */
function answered(answer: string, size = 4000, between = '', mark = MARK): Buffer {
  const data = Buffer.from(answer);
  const pieces: Buffer[] = [];
  for (let at = 0; at === 0 || at < data.length; at += size) {
    const piece = data.subarray(at, at + size);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(piece.length + (at + size < data.length ? 0x80_00_00_00 : 0));
    pieces.push(mark, length, piece, Buffer.from(at + size < data.length ? between : ''));
  }
  return Buffer.concat(pieces);
}

test('however a stream is cut into chunks, each call gets what came before its mark, and its answer', async () => {
  const text = fc.string({ unit: 'grapheme-ascii', maxLength: 60 });
  // Beginnings of the mark are what could go wrong.
  const tricky = fc.oneof(text, fc.constantFrom('0', '0123456789abcde', '00123456789abcd'));
  await fc.assert(
    fc.asyncProperty(
      fc.array(tricky, { maxLength: 6 }),
      text,
      text,
      fc.integer({ min: 1, max: 30 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 20 })),
      async (parts, late, answer, piece, sizes) => {
        const before = parts.join('').replaceAll(MARK.toString(), '');
        const output = new MarkedOutput(FAMILIES);
        const { ended } = output.expect(MARKS);
        const early = before.slice(0, before.length / 2);
        const stream = Buffer.concat([
          Buffer.from(early),
          FIRST,
          Buffer.from(before.slice(early.length)),
          answered(answer, piece, '~'),
          Buffer.from(late),
        ]);
        for (let start = 0; start < stream.length;) {
          const { value: size } = sizes.next() as { value: number };
          output.push(stream.subarray(start, start + size));
          start += size;
        }
        assert.equal((await ended)?.toString(), answer);
        assert.deepEqual(output.take(), { text: before, isTruncated: false });
        output.push(Buffer.from(' idle'));
        output.end();
        const betweens = '~'.repeat(Math.max(0, Math.ceil(answer.length / piece) - 1));
        assert.equal(output.take().text, `${betweens}${late} idle`);
      },
    ),
  );
});

test('a mark is found however much came before it, and what comes after it is kept', async () => {
  const output = new MarkedOutput(FAMILIES);
  const { ended } = output.expect(MARKS);
  const chunk = Buffer.alloc(1 << 20, 'x');
  for (let count = 0; count < 12; count += 1) output.push(chunk);
  output.push(Buffer.concat([answered(''), Buffer.from('next')]));
  await ended;
  const { text, isTruncated } = output.take();
  assert.equal(isTruncated, true);
  assert.ok(text.startsWith('x'.repeat(MAX_OUTPUT_BYTES)));
  assert.deepEqual(output.take(), { text: 'next', isTruncated: false });
});

test('a call gets no output of other servers on the same interpreter, and a note when its own is lost', async () => {
  const push = (output: MarkedOutput, ...parts: readonly (string | Buffer)[]) =>
    output.push(Buffer.concat(parts.map((part) => Buffer.from(part))));
  const found = new MarkedOutput(FAMILIES, true);
  push(found, 'of others');
  const first = found.expect(MARKS);
  push(found, ' and more', FIRST, 'mine', answered('a'));
  assert.equal((await first.ended)?.toString(), 'a');
  assert.deepEqual(found.take(), { text: 'mine', isTruncated: false });

  const cut = new MarkedOutput(FAMILIES, true);
  const second = cut.expect(MARKS);
  push(cut, 'the end of it', answered('b'));
  assert.equal((await second.ended)?.toString(), 'b');
  assert.equal(cut.take().isTruncated, true);

  const behind = Buffer.from('FEDCBA98<behind>');
  const gone = new MarkedOutput(FAMILIES, true);
  const third = gone.expect({ ...MARKS, behind });
  push(gone, 'of later ones', behind);
  assert.equal(await third.ended, null);
});

type Between = readonly (
  | string
  | { readonly printed: string; readonly answer: string; readonly size: number }
)[];

test('however a stream is cut into chunks, nothing of the units of others is in what a call gets', async () => {
  // Text must not complete FEDCBA9 to the beginning of a mark, which would make its output foreign.
  const text = fc.string({ unit: 'grapheme-ascii', maxLength: 30 }).filter((made) => !made.startsWith('8'));
  const theirs = fc.record({ printed: text, answer: text, size: fc.integer({ min: 1, max: 30 }) });
  const between = fc.array(fc.oneof(text, theirs, fc.constant('FEDCBA9')), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(
      between,
      between,
      fc.infiniteStream(fc.integer({ min: 1, max: 20 })),
      fc.boolean(),
      async (early, late, sizes, isEarly) => {
        const output = new MarkedOutput(FAMILIES);
        const push = (data: Buffer) => {
          for (let start = 0; start < data.length;) {
            const { value: size } = sizes.next() as { value: number };
            output.push(data.subarray(start, start + size));
            start += size;
          }
        };
        const encode = (parts: Between) =>
          Buffer.concat(
            parts.map((part) =>
              typeof part === 'string'
                ? Buffer.from(part)
                : Buffer.concat([
                    THEIR_FIRST,
                    Buffer.from(part.printed),
                    answered(part.answer, part.size, '~', THEIR_LAST),
                  ]),
            ),
          );
        const ours = (parts: Between) => parts.filter((part) => typeof part === 'string').join('');
        if (isEarly) push(encode(early));
        const first = output.expect(MARKS);
        if (!isEarly) push(encode(early));
        push(Buffer.concat([FIRST, Buffer.from('mine'), answered('a'), encode(late)]));
        assert.equal((await first.ended)?.toString(), 'a');
        assert.equal(output.take().text, `${ours(early)}mine`);
        output.end();
        assert.equal(output.take().text, ours(late));
      },
    ),
  );
});
