import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { Report } from '../bench/report.ts';

const ROOT = resolve(import.meta.dirname, '..');
const run = promisify(execFile);

for (const name of [
  'start',
  'exec',
  'throughput',
  'burst',
  'age',
  'memory',
  'resting',
  'server',
  'rest',
  'sdk',
  'terminal',
  'cli',
  'dashboard',
  'recovery',
  'neighbours',
  'network',
]) {
  test(`the benchmark "${name}" runs and yields numbers`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-bench-test-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'report.json');
    const { stdout } = await run(process.execPath, ['bench/run.ts', name, '--quick', '--json', file], {
      cwd: ROOT,
    });
    const report = JSON.parse(await readFile(file, 'utf8')) as Report;
    const measurements = report.benchmarks.flatMap((benchmark) => benchmark.measurements);
    assert.deepEqual(
      report.benchmarks.map((benchmark) => benchmark.name),
      [name],
    );
    assert.ok(measurements.some(({ target }) => target !== null));
    for (const { what, samples, p50, p95, p99 } of measurements) {
      assert.ok(samples > 0 && [p50, p95, p99].every(Number.isFinite), what);
      assert.ok(stdout.includes(what), `${what} is not in the table`);
    }
  });
}

test('a benchmark that does not exist is refused with the names of those that do', async () => {
  await assert.rejects(run(process.execPath, ['bench/run.ts', 'nonsense'], { cwd: ROOT }), (error) => {
    assert.match(String(error), /nonsense[\s\S]*start:[\s\S]*memory:/);
    return true;
  });
});
