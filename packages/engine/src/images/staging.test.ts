import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Staging } from './staging.ts';

/** Writes for about as long as a program needs to notice that its pipe has no reader. */
const WRITE =
  'const { writeFileSync } = require("fs"); const end = Date.now() + 700;\
for (let i = 0; Date.now() < end; i++) try { writeFileSync(`${process.argv[1]}/${i}`, ""); } catch { break; }';

test('files that programs of a killed engine still write do not prevent the cleanup', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-staging-'));
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 20 }));
  const left = join(folder, 'left');
  await mkdir(left);
  const writers = [1, 2].map(() => spawn(process.execPath, ['-e', WRITE, left], { stdio: 'ignore' }));
  const ended = Promise.all(writers.map((writer) => once(writer, 'exit')));
  while ((await readdir(left)).length < 10) await new Promise((resolve) => setImmediate(resolve));
  await new Staging(folder).clear();
  await ended;
  assert.deepEqual(await readdir(folder), []);
});
