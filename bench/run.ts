import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import type { Benchmark, BenchmarkContext } from './benchmark.ts';
import { age } from './age.ts';
import { burst } from './burst.ts';
import { calls } from './calls.ts';
import { cli } from './cli.ts';
import { dashboard } from './dashboard.ts';
import { exec } from './exec.ts';
import { idle } from './idle.ts';
import { memory } from './memory.ts';
import { neighbours } from './neighbours.ts';
import { network } from './network.ts';
import { recovery } from './recovery.ts';
import { newReport, renderTable, summarize, type BenchmarkReport } from './report.ts';
import { rest } from './rest.ts';
import { resting } from './resting.ts';
import { sdk } from './sdk.ts';
import { server } from './server.ts';
import { snapshot } from './snapshot.ts';
import { start } from './start.ts';
import { terminal } from './terminal.ts';
import { throughput } from './throughput.ts';
import { warm } from './warm.ts';

/**
 * Runs the named benchmarks, or all: `npm run bench -- start exec`.
 * Each prints its table when it is done; `--json FILE` writes everything; `--quick` only shows that they work.
 * A missed target is not a failure: the exit code says whether the measurements could be made.
 */
const BENCHMARKS: readonly Benchmark[] = [
  start,
  exec,
  calls,
  throughput,
  warm,
  burst,
  age,
  memory,
  resting,
  idle,
  server,
  rest,
  sdk,
  terminal,
  cli,
  dashboard,
  recovery,
  snapshot,
  neighbours,
  network,
];

const { values: options, positionals: names } = parseArgs({
  options: { quick: { type: 'boolean' }, json: { type: 'string' } },
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
const report = newReport(context.isQuick);
for (const benchmark of BENCHMARKS.filter(({ name }) => names.length === 0 || names.includes(name))) {
  const result = await measure(benchmark);
  report.benchmarks.push(result);
  console.log(`${renderTable(benchmark, result)}\n`);
  if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
}

async function measure(benchmark: Benchmark): Promise<BenchmarkReport> {
  const [before = 0] = loadavg();
  const begun = performance.now();
  const measurements = (await benchmark.run(context)).map(summarize);
  const [after = 0] = loadavg();
  const seconds = (performance.now() - begun) / 1000;
  return { name: benchmark.name, promise: benchmark.promise, seconds, load: { before, after }, measurements };
}
