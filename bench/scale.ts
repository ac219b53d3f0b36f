import { freemem, loadavg } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client, Sandbox } from '@svc/sdk';
import { TestServer } from '../test/e2e/start-server.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { drawBars } from './suite/bar-picture.ts';
import { percentile } from './suite/benchmark.ts';
import { describeRun, renderRows, writeBetween, writePicture } from './suite/documents.ts';
import { timed } from './suite/measure.ts';
import { readCpuMs, readTree, sumOf } from './suite/processes.ts';
import { writeResults } from './suite/results.ts';

/**
 * `make bench-scale`: how cost grows with the number of idle sandboxes, class container, over HTTP. Writes a table of
 * docs/promises.md, its picture and bench/results.json. `bench/scale.ts 10 100` for other numbers; with `--quick` it only shows that it works.
 */
const { values: options, positionals } = parseArgs({
  options: { quick: { type: 'boolean' } },
  allowPositionals: true,
});
const isQuick = options.quick === true;
const USUAL = isQuick ? [2, 4] : [10, 100, 500, 1000];
const COUNTS = positionals.length > 0 ? positionals.map(Number) : USUAL;
/** Memory of one sandbox, with that of the kernel; counts for which the host lacks memory are left out. */
const SANDBOX_BYTES = 4 * 2 ** 20;
const AT_ONCE = 4;
const SAMPLES = isQuick ? 2 : 20;
/** The compile cache of `svc`, without which every process is larger. */
process.env['NODE_COMPILE_CACHE'] ??= resolve(import.meta.dirname, '../node_modules/.cache/svc');
const SETTLE_MS = isQuick ? 100 : 10_000;
/** Long enough to include every task that runs once a minute. */
const IDLE_MS = isQuick ? 500 : 60_000;
const CALL_TIMEOUT_MS = 120_000;
/** The promise is about so many. */
const PROMISED_COUNT = 500;
const MIB = 2 ** 20;

const WHATS = [
  'create, ms',
  'exec of `/bin/true`, ms',
  'list of 100, ms',
  'CPU of server and engine while all are idle, % of a core',
  'memory of server and engine, MiB',
] as const;

const before = loadavg()[0] ?? 0;
const server = await TestServer.start();
try {
  const client = new Client({ apiUrl: server.url, timeoutMs: CALL_TIMEOUT_MS });
  const sandboxes: Sandbox[] = [];
  const columns: Column[] = [];
  for (const count of COUNTS) {
    if ((count - sandboxes.length) * SANDBOX_BYTES > freemem() / 2) break;
    console.error(`${count} sandboxes`);
    columns.push({ count, values: await measure(client, sandboxes, count) });
  }
  const rows = WHATS.map((what, row) => ({
    what,
    values: columns.map(({ values }) => values[row] ?? Number.NaN),
  }));
  const head = ['p50', ...columns.map(({ count }) => `${count} sandboxes`)];
  const text = `${describeRun({ before, after: loadavg()[0] ?? 0 })}\n\n${renderRows(head, rows)}`;
  console.log(text);
  if (!isQuick) record(text, columns);
} finally {
  // It takes its sandboxes with it.
  await server.destroy();
}

async function measure(client: Client, sandboxes: Sandbox[], count: number): Promise<number[]> {
  const create = async () => {
    sandboxes.push(await Sandbox.create({ client, image: BUSYBOX, isolation: 'container' }));
  };
  while (sandboxes.length < count - SAMPLES / 2)
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, count - SAMPLES / 2 - sandboxes.length) }, create),
    );
  const creates: number[] = [];
  while (sandboxes.length < count) creates.push(await timed(create));
  const [first] = sandboxes;
  await first?.exec('/bin/true');
  const execs = await repeat(() => timed(async () => await first?.exec('/bin/true')));
  const lists = await repeat(() =>
    timed(async () => await client.call('sandboxes.list', { query: { limit: 100 } })),
  );
  await delay(SETTLE_MS);
  const begun = { cpuMs: ownCpuMs(), at: performance.now() };
  await delay(IDLE_MS);
  const cpuPercent = ((ownCpuMs() - begun.cpuMs) / (performance.now() - begun.at)) * 100;
  const memoryMib = sumOf([server.pid, server.engine.pid].flatMap(readTree)) / MIB;
  return [percentile(creates, 50), percentile(execs, 50), percentile(lists, 50), cpuPercent, memoryMib];
}

async function repeat(work: () => Promise<number>): Promise<number[]> {
  const values: number[] = [];
  for (let count = 0; count < SAMPLES; count++) values.push(await work());
  return values;
}

/** Sandboxes are below the engine's tini, not below the engine. */
function ownCpuMs(): number {
  return [server.pid, server.engine.pid].flatMap(readTree).reduce((sum, { pid }) => sum + readCpuMs(pid), 0);
}

interface Column {
  readonly count: number;
  readonly values: readonly number[];
}

function record(text: string, columns: readonly Column[]): void {
  const promised = columns.find(({ count }) => count === PROMISED_COUNT)?.values;
  if (promised !== undefined) {
    const cpu = promised[WHATS.findIndex((what) => what.startsWith('CPU'))] ?? Number.NaN;
    writeResults([
      { what: `CPU with ${PROMISED_COUNT} idle`, unit: '%', values: [cpu], promise: 'scale-cpu' },
    ]);
  }
  writeBetween('docs/promises.md', 'scale', text);
  const charts = WHATS.map((title, row) => ({
    title: title.replaceAll('`', ''),
    bars: columns.map(({ count, values }) => ({ name: `svc, ${count}`, value: values[row] ?? 0 })),
  }));
  writePicture('docs/pictures/scale.svg', drawBars(charts));
}
