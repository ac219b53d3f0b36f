import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { followLines, lastLines } from './log-lines.ts';

let folder: string;
let path: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-lines-'));
  path = join(folder, 'server.log');
});
after(() => rm(folder, { recursive: true }));

const LONG = 'ü'.repeat(50_000);

test('the last lines are whole, however long they and the file are', async () => {
  await writeFile(path, `first\n${LONG}\n${LONG}\nlast\n`);
  assert.deepEqual(await lastLines(path, 1), ['last']);
  assert.deepEqual(await lastLines(path, 2), [LONG, 'last']);
  assert.deepEqual(await lastLines(path, 4), ['first', LONG, LONG, 'last']);
  assert.deepEqual(await lastLines(path, 1_000), ['first', LONG, LONG, 'last']);
});

test('only lines after an offset are returned, also when the file was truncated', async () => {
  await writeFile(path, 'old\nnew\n');
  assert.deepEqual(await lastLines(path, 9, 4), ['new']);
  assert.deepEqual(await lastLines(path, 9, 8), []);
  assert.deepEqual(await lastLines(path, 9, 400), []);
});

test('a file that is missing or empty has no lines, and one that is being written has its last', async () => {
  assert.deepEqual(await lastLines(join(folder, 'none'), 5), []);
  await writeFile(path, '');
  assert.deepEqual(await lastLines(path, 5), []);
  await writeFile(path, 'one\ntwo');
  assert.deepEqual(await lastLines(path, 1), ['two']);
});

test('no line is lost between the last ones and those that follow', async () => {
  await writeFile(path, 'zero\none\n');
  const seen: string[] = [];
  const stop = new AbortController();
  // Written from within: before the first look at the file is over, and in pieces.
  const onLine = (line: string) => {
    seen.push(line);
    if (line === 'one') void appendFile(path, 'tw').then(() => appendFile(path, 'o\nthree\n'));
  };
  const following = followLines(path, 1, onLine, stop.signal);
  await waitUntil(() => seen.includes('three'), { what: 'the line that was appended' });
  stop.abort();
  await following;
  assert.deepEqual(seen, ['one', 'two', 'three']);
});
