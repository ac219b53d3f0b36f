import { loadavg } from 'node:os';
import { createUseRemove, startContenders, type Contender } from './peers/contenders.ts';
import { measureNeighbours } from './peers/neighbours.ts';
import { drawBars } from './suite/bar-picture.ts';
import { percentile, type Measurement } from './suite/benchmark.ts';
import { describeRun, renderRows, writeBetween, writePicture, type Row } from './suite/documents.ts';
import { timed } from './suite/measure.ts';
import { renderTable } from './suite/render-table.ts';
import { readResults, writeResults } from './suite/results.ts';

/**
 * `make bench-peers`: beside Docker and Podman, in turn in one run, on the same root file system, each through its HTTP interface and
 * with the network that it gives by default. Each is asked for what all of them can: a container that waits, and processes in it.
 * Writes a table of docs/promises.md, the picture of README.md and bench/results.json; with `--quick` it only shows that it works.
 */
const ROUNDS = 15;
const EXECS = 40;
const BURST = 100;
/** The best of these runs counts, because the others may be disturbed by other load. */
const BURSTS = 2;
const CALLERS = 4;
const WINDOW_MS = 6000;
const IDLE_COUNT = 20;
const MIB = 2 ** 20;
const PICTURE = 'docs/pictures/peers.svg';

const isQuick = process.argv.includes('--quick');
await using stack = new AsyncDisposableStack();
const contenders = await startContenders(stack);
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => void stack.disposeAsync().finally(() => process.exit(1)));

const before = loadavg()[0] ?? 0;
/** Of the bursts, in the order of the contenders. */
const failures = contenders.map(() => 0);
const [outputs, processes] = [
  await inTurn('create to first output, ms', isQuick ? 1 : ROUNDS, firstOutput),
  await execs(),
];
const bursts = await inTurn(
  `${isQuick ? 5 : BURST} at once, all have spoken, s`,
  isQuick ? 1 : BURSTS,
  burst,
  Math.min,
);
const neighbours = await measureNeighbours(contenders, isQuick);
const rows = [
  outputs,
  processes,
  bursts,
  { what: 'of these failed', values: failures },
  await inTurn(`created, used and removed by ${CALLERS} callers, per second`, isQuick ? 1 : 2, sustained),
  await inTurn(`memory of processes per idle sandbox, MiB`, 1, memory),
  ...neighbours,
];
const run = describeRun({ before, after: loadavg()[0] ?? 0 });
const table = `${run}\n\n${renderRows(['p50', ...contenders.map(({ name }) => name)], rows)}`;
const measurements = promises();
console.log(`${table}\n\n${renderTable(measurements, readResults())}`);
if (!isQuick) record();

async function inTurn(
  what: string,
  rounds: number,
  measure: (contender: Contender) => Promise<number>,
  choose: (...values: readonly number[]) => number = (...values) => percentile(values, 50),
): Promise<Row> {
  console.error(what);
  const values: number[][] = contenders.map(() => []);
  for (let round = 0; round < rounds; round++)
    for (const [index, contender] of contenders.entries()) values[index]?.push(await measure(contender));
  return { what, values: values.map((own) => choose(...own)) };
}

async function firstOutput(contender: Contender): Promise<number> {
  await contender.untilFull?.();
  return await createUseRemove(contender);
}

async function execs(): Promise<Row> {
  const ids = new Map<Contender, string>();
  for (const contender of contenders) ids.set(contender, await contender.create());
  const row = await inTurn('/bin/true in one that runs, ms', isQuick ? 2 : EXECS, (contender) =>
    timed(() => contender.run(ids.get(contender) ?? '', ['/bin/true'])),
  );
  for (const [contender, id] of ids) await contender.remove(id);
  return row;
}

async function burst(contender: Contender): Promise<number> {
  await contender.untilFull?.();
  const start = performance.now();
  const made: string[] = [];
  const outcomes = await Promise.allSettled(
    Array.from({ length: isQuick ? 5 : BURST }, async () => {
      const id = await contender.create();
      made.push(id);
      await contender.run(id, ['/bin/echo', 'x']);
    }),
  );
  const took = (performance.now() - start) / 1000;
  const failed = outcomes.filter(({ status }) => status === 'rejected');
  failures[contenders.indexOf(contender)] = (failures[contenders.indexOf(contender)] ?? 0) + failed.length;
  for (const { reason } of failed.slice(0, 1) as PromiseRejectedResult[])
    console.error(`${contender.name}: ${String(reason)}`);
  await removeAll(contender, made);
  return took;
}

/** Removes in parallel, or the hundred containers of each would take most of the run. */
async function removeAll(contender: Contender, ids: readonly string[]): Promise<void> {
  const left = [...ids];
  const remover = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) await contender.remove(id);
  };
  await Promise.all(Array.from({ length: CALLERS }, remover));
}

async function sustained(contender: Contender): Promise<number> {
  const start = performance.now();
  let completed = 0;
  const caller = async () => {
    while (performance.now() - start < (isQuick ? 500 : WINDOW_MS)) {
      await createUseRemove(contender);
      completed++;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return completed / ((performance.now() - start) / 1000);
}

/** By how much all its processes grow, those of the engines included. */
async function memory(contender: Contender): Promise<number> {
  const start = contender.memoryBytes();
  const ids: string[] = [];
  for (let count = 0; count < IDLE_COUNT; count++) ids.push(await contender.create());
  const grown = contender.memoryBytes() - start;
  await removeAll(contender, ids);
  return grown / IDLE_COUNT / MIB;
}

/** How svc compares with Docker. */
function promises(): Measurement[] {
  const of = ({ values }: Row, name: string) =>
    values[contenders.findIndex((each) => each.name === name)] ?? Number.NaN;
  const worst = (name: string) =>
    Math.max(...neighbours.slice(0, -1).map((row) => of(row, name) / of(row, 'docker')));
  const own = contenders.flatMap(({ name }, index) => (name.startsWith('svc') ? [index] : []));
  const failed = own.reduce((sum, index) => sum + (neighbours.at(-1)?.values[index] ?? 0), 0);
  const row = (what: string, promise: string, value: number): Measurement => ({
    what,
    unit: '×',
    values: [value],
    promise,
  });
  return [
    row(
      'first output: Docker / svc by default',
      'peers-first-output',
      of(outputs, 'docker') / of(outputs, 'svc, by default'),
    ),
    row(
      '100 at once: svc by default / Docker',
      'peers-burst',
      of(bursts, 'svc, by default') / of(bursts, 'docker'),
    ),
    row(
      'beside busy neighbours, the worst row: svc, container / Docker',
      'neighbours-container',
      worst('svc, container'),
    ),
    row(
      'beside busy neighbours, the worst row: svc, gVisor / Docker',
      'neighbours-gvisor',
      worst('svc, gVisor'),
    ),
    { ...row('calls of svc beside busy neighbours that failed', 'neighbours-failures', failed), unit: '' },
  ];
}

function record(): void {
  writeResults(measurements);
  writeBetween('docs/promises.md', 'peers', table);
  const charts = [outputs, processes].map(({ what, values }) => ({
    title: what,
    bars: contenders.map(({ name }, index) => ({ name, value: values[index] ?? 0 })),
  }));
  writePicture(PICTURE, drawBars(charts));
  const about =
    'with a class named nothing is kept warm; [the whole table](docs/promises.md#beside-docker-and-podman).';
  const picture = `![Beside Docker and Podman](${PICTURE})`;
  writeBetween('README.md', 'peers', `${picture}\n\n${run} Each ran in turn with the others; ${about}`);
}
