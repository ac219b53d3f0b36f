import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { StatusLine } from './status-line.ts';

/** What a terminal was sent. */
function record() {
  const written: string[] = [];
  // As much of a stream as a line needs.
  const stream = { isTTY: true, columns: 80, write: (text: string) => written.push(text) };
  return { written, stream: stream as unknown as NodeJS.WriteStream };
}

test('a status is text on one line, which is erased at the end', async () => {
  const { written, stream } = record();
  const status = new StatusLine('starting web from x\n\u001B]0;owned\u0007', stream);
  status.note('a\u009B8m\u202E');
  await waitUntil(() => written.length > 0);
  assert.match(
    written[0] ?? '',
    /^\r.\[2Kstarting web from x<U\+000A><U\+001B>\]0;owned<U\+0007>: a<U\+009B>8m<U\+202E> … \d+s$/,
  );
  const seen = written.length;
  status.say('\u001B[2Junpacking');
  await waitUntil(() => written.length > seen);
  assert.match(written.at(-1) ?? '', /^\r.\[2K<U\+001B>\[2Junpacking … \d+s$/);
  status[Symbol.dispose]();
  assert.equal(written.at(-1), '\r\u001B[2K');
});
