import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { readResults, writeResults } from '../bench/suite/results.ts';

const ROOT = resolve(import.meta.dirname, '..');
const run = promisify(execFile);
/** These need Docker or many sandboxes; `make bench-peers` and `make bench-scale` run them. */
const BY_HAND = new Set(['peers', 'scale']);

const benchmarks = new Set(readResults().map(({ benchmark }) => benchmark));
for (const name of benchmarks.difference(BY_HAND)) {
  test(`the benchmark "${name}" measures all its promises`, async (t) => {
    const file = await copyOfResults(t, (results) => results.map((result) => ({ ...result, date: null })));
    const args = ['bench/run.ts', name, '--quick', '--results', file];
    const { stdout } = await run(process.execPath, args, { cwd: ROOT });
    assert.doesNotMatch(stdout, /NaN|–/);
    const promised = readResults().filter(({ benchmark }) => benchmark === name);
    const measured = readResults(file).filter(({ date }) => date !== null);
    assert.deepEqual(
      measured.map(({ id }) => id),
      promised.map(({ id }) => id),
    );
    for (const { id, value } of measured) assert.ok(Number.isFinite(value), id);
  });
}

test('a result replaces the last one of its promise, rounded, with its date, and no other', async (t) => {
  const file = await copyOfResults(t);
  const before = readResults(file);
  writeResults([{ what: 'get', unit: '/s', values: [3.14159, 4000, 5000], promise: 'get-sqlite' }], file);
  const after = readResults(file);
  const { value, met, date } = after.find(({ id }) => id === 'get-sqlite') ?? {};
  assert.deepEqual({ value, met }, { value: 4000, met: false });
  assert.equal(date, new Date().toISOString().slice(0, 10));
  const others = (results: typeof after) => results.filter(({ id }) => id !== 'get-sqlite');
  assert.deepEqual(others(after), others(before));
  assert.throws(
    () => writeResults([{ what: 'x', unit: 'ms', values: [1], promise: 'get-sqlite' }], file),
    /no promise get-sqlite in 'ms'/,
  );
});

test('a benchmark that does not exist is refused with the names of those that do', async () => {
  await assert.rejects(run(process.execPath, ['bench/run.ts', 'nonsense'], { cwd: ROOT }), (error) => {
    assert.match(String(error), /nonsense[\s\S]*start:[\s\S]*snapshot:/);
    return true;
  });
});

async function copyOfResults(
  t: TestContext,
  change: (results: ReturnType<typeof readResults>) => unknown = (results) => results,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-test-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'results.json');
  await writeFile(file, JSON.stringify(change(readResults())));
  return file;
}
