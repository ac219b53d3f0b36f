import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { burst } from './burst.ts';
import { cli } from './cli.ts';
import { e2b } from './e2b.ts';
import { exec } from './exec.ts';
import { idle } from './idle.ts';
import { network } from './network.ts';
import { recovery } from './recovery.ts';
import { server } from './server.ts';
import { snapshot } from './snapshot.ts';
import { start } from './start.ts';
import type { Benchmark, BenchmarkContext } from './suite/benchmark.ts';
import { renderTable } from './suite/render-table.ts';
import { readResults, RESULTS, writeResults } from './suite/results.ts';

/**
 * Runs the named benchmarks, or all: `npm run bench -- start exec`.
 * Each prints its table when it is done, and writes what it promises to bench/results.json, or to `--results FILE`.
 * `--quick` only shows that they work, and writes to such a file alone.
 * A missed target is not a failure: the exit code says whether the measurements could be made.
 */
const BENCHMARKS: readonly Benchmark[] = [
  start,
  exec,
  e2b,
  burst,
  idle,
  cli,
  server,
  network,
  recovery,
  snapshot,
];

const { values: options, positionals: names } = parseArgs({
  options: { quick: { type: 'boolean' }, results: { type: 'string' } },
  allowPositionals: true,
});
const unknown = names.filter((name) => !BENCHMARKS.some((benchmark) => benchmark.name === name));
if (unknown.length > 0) {
  const known = BENCHMARKS.map(({ name, description }) => `  ${name}: ${description}`);
  console.error(`error: no benchmark is called ${unknown.join(', ')}; there are\n${known.join('\n')}`);
  process.exit(2);
}

const interrupted = new AbortController();
process.once('SIGINT', () => interrupted.abort(new Error('interrupted')));
process.once('SIGTERM', () => interrupted.abort(new Error('interrupted')));

const context: BenchmarkContext = {
  isQuick: options.quick === true,
  signal: interrupted.signal,
  note: (text) => console.error(text),
};
const results = options.results ?? (context.isQuick ? undefined : RESULTS);
for (const benchmark of BENCHMARKS.filter(({ name }) => names.length === 0 || names.includes(name)))
  await measure(benchmark);

async function measure(benchmark: Benchmark): Promise<void> {
  const [before = 0] = loadavg();
  const begun = performance.now();
  const measurements = await benchmark.run(context);
  const [after = 0] = loadavg();
  const seconds = (performance.now() - begun) / 1000;
  console.log(`${benchmark.name}: ${benchmark.description}`);
  console.log(renderTable(measurements, readResults()));
  console.log(`${seconds.toFixed(0)} s; load ${before.toFixed(1)} before, ${after.toFixed(1)} after\n`);
  if (results !== undefined) writeResults(measurements, results);
}
