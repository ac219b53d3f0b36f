import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProgressLine } from './progress.ts';

const MIB = 1024 * 1024;

/** What a stream like stderr was sent. */
function record(isTTY: boolean) {
  const written: string[] = [];
  // As much of a stream as a line needs.
  const stream = { isTTY, columns: 80, write: (text: string) => written.push(text) };
  return { written, stream: stream as unknown as NodeJS.WriteStream };
}

test('a log gets a line for each tenth of a download, and none for an existing image', () => {
  const { written, stream } = record(false);
  const line = new ProgressLine(stream);
  line.showFetch({ message: 'resolving image x', done_bytes: null, total_bytes: null });
  line.showFetch({ message: 'starting the sandbox', done_bytes: null, total_bytes: null });
  assert.deepEqual(written, []);
  for (let done = 0; done <= 100; done++)
    line.showFetch({ message: 'downloading', done_bytes: done * MIB, total_bytes: 100 * MIB });
  line.showFetch({ message: 'unpacking image', done_bytes: null, total_bytes: null });
  assert.equal(written.length, 12);
  assert.equal(written[3], 'downloading 30% of 100 MiB\n');
  assert.equal(written.at(-1), 'unpacking image\n');
});

test('on a terminal it is a bar that takes one line and is wiped away', () => {
  const { written, stream } = record(true);
  const line = new ProgressLine(stream);
  line.show({ step: 'downloading', doneBytes: 5 * MIB, totalBytes: 10 * MIB });
  assert.match(written[0] ?? '', /^\r.\[2Kdownloading █{12}░{12} 5\.0 MiB of 10\.0 MiB$/);
  line.clear();
  assert.equal(written.at(-1), '\r\u001B[2K');
});

test('messages of registries and servers are text on one line', () => {
  for (const isTTY of [true, false]) {
    const { written, stream } = record(isTTY);
    const line = new ProgressLine(stream);
    line.show({ step: 'building', message: 'x\nforged\u001B]0;owned\u0007\u202E' });
    line.showFetch({ message: 'downloading', done_bytes: 0, total_bytes: 1 });
    line.showFetch({ message: 'a\u009B8m\r', done_bytes: null, total_bytes: null });
    const start = isTTY ? '\r\u001B[2K' : '';
    const end = isTTY ? '' : '\n';
    assert.equal(written[0], `${start}x<U+000A>forged<U+001B>]0;owned<U+0007><U+202E>${end}`);
    assert.equal(written.at(-1), `${start}a<U+009B>8m<U+000D>${end}`);
  }
});
