import { loadavg } from 'node:os';
import { waitUntil } from '@svc/contract/testing';
import { Client, Sandbox } from '@svc/sdk';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../test/e2e/start-server.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { drawBars } from './bar-picture.ts';
import { BareRuntimes } from './bare-runtimes.ts';
import { percentile } from './benchmark.ts';
import { PeerDaemon, type PeerName } from './peer-daemons.ts';
import { readTree, sumOf } from './process-memory.ts';
import { describeRun, renderRows, writeBetween, writePicture } from './write-between.ts';

/**
 * `make bench-peers`: beside Docker and Podman, in turn in one run, on the same root file system, each through its HTTP interface and
 * with the network that it gives by default. Each is asked for what all of them can: a container that waits, and processes in it.
 * Writes the table of docs/promises.md and the picture of README.md.
 */
interface Contender {
  readonly name: string;
  /** The runtime below it, which can be measured by itself. */
  readonly runtime?: 'runc' | 'runsc';
  /** Waits until it has prepared the next sandbox, where it does that. */
  rest?(): Promise<void>;
  create(): Promise<string>;
  run(id: string, command: readonly string[]): Promise<unknown>;
  remove(id: string): Promise<void>;
  memoryBytes(): number;
}

const ROUNDS = 15;
const EXECS = 40;
const BURST = 100;
/** The best of these runs counts, because the others may be disturbed by other load. */
const BURSTS = 2;
const CALLERS = 4;
const WINDOW_MS = 6000;
const IDLE_COUNT = 20;
const REST_TIMEOUT_MS = 60_000;
const MIB = 2 ** 20;
const PICTURE = 'docs/pictures/peers.svg';

const isQuick = process.argv.includes('--quick');
await using stack = new AsyncDisposableStack();
const contenders: Contender[] = [];
for (const name of ['docker', 'podman'] as const) contenders.push(await openPeer(name));
contenders.push(
  await openOwn('svc, container', 'container'),
  await openOwn('svc, gVisor', 'gvisor'),
  await openOwn('svc, by default'),
);

for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => void stack.disposeAsync().finally(() => process.exit(1)));

const begun = loadavg()[0] ?? 0;
/** Of the bursts, in the order of the contenders. */
const failures = contenders.map(() => 0);
const rows = [
  await inTurn('create to first output, ms', isQuick ? 1 : ROUNDS, firstOutput),
  await execs(),
  await inTurn(`${isQuick ? 5 : BURST} at once, all have spoken, s`, isQuick ? 1 : BURSTS, burst, Math.min),
  { what: 'of these failed', values: failures },
  await floors(),
  await inTurn(`created, used and removed by ${CALLERS} callers, per second`, isQuick ? 1 : 2, sustained),
  await inTurn(`memory of processes per idle sandbox, MiB`, 1, memory),
];
const text = `${loads()}\n\n${renderRows(['p50', ...contenders.map(({ name }) => name)], rows)}`;
console.log(text);
if (!isQuick) await record(text);

type Row = { readonly what: string; readonly values: readonly number[] };

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
  await contender.rest?.();
  return await createUseRemove(contender);
}

async function createUseRemove(contender: Contender): Promise<number> {
  const start = performance.now();
  const id = await contender.create();
  await contender.run(id, ['/bin/echo', 'x']);
  const took = performance.now() - start;
  await contender.remove(id);
  return took;
}

async function execs(): Promise<Row> {
  const ids = new Map<Contender, string>();
  for (const contender of contenders) ids.set(contender, await contender.create());
  const row = await inTurn('/bin/true in one that runs, ms', isQuick ? 2 : EXECS, async (contender) => {
    const start = performance.now();
    await contender.run(ids.get(contender) ?? '', ['/bin/true']);
    return performance.now() - start;
  });
  for (const [contender, id] of ids) await contender.remove(id);
  return row;
}

async function burst(contender: Contender): Promise<number> {
  await contender.rest?.();
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

/** The lower bound: as many runs of the runtime's own command, without disk, network and limits. */
async function floors(): Promise<Row> {
  await using bare = await BareRuntimes.prepare();
  const count = isQuick ? 5 : BURST;
  const what = `bare \`runc run\` or \`runsc run\` as often, ${CALLERS} at a time, s`;
  const known = new Map<string, number>();
  for (const name of ['runc', 'runsc'] as const) {
    const start = performance.now();
    let left = count;
    const caller = async () => {
      while (left-- > 0) await bare.run(name);
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    known.set(name, (performance.now() - start) / 1000);
  }
  return { what, values: contenders.map(({ runtime = '' }) => known.get(runtime) ?? Number.NaN) };
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
  const before = contender.memoryBytes();
  const ids: string[] = [];
  for (let count = 0; count < IDLE_COUNT; count++) ids.push(await contender.create());
  const grown = contender.memoryBytes() - before;
  await removeAll(contender, ids);
  return grown / IDLE_COUNT / MIB;
}

async function openPeer(name: PeerName): Promise<Contender> {
  const daemon = stack.use(await PeerDaemon.start(name));
  const { api } = daemon;
  return {
    name,
    create: () => api.create(),
    run: (id, command) => api.exec(id, command),
    remove: (id) => api.remove(id),
    memoryBytes: () => sumOf(readTree(daemon.pid)),
  };
}

/** With a class: cold, without the warm pool. Without: with the defaults of a new installation. */
async function openOwn(name: string, isolation?: 'container' | 'gvisor'): Promise<Contender> {
  const engineArgs = isolation === undefined ? ['--warm-adaptive', '3'] : [];
  const server = await TestServer.start({ args: [], engineArgs });
  stack.defer(() => server.destroy());
  const { key } = await createKey(server.engine.folder, { namespace: 'default' });
  const client = new Client({ apiUrl: server.url, apiKey: key });
  const sandboxes = new Map<string, Sandbox>();
  return {
    name,
    runtime: isolation === 'container' ? 'runc' : 'runsc',
    ...(isolation === undefined ? { rest: () => untilOneWaits(server) } : {}),
    create: async () => {
      const sandbox = await Sandbox.create({
        client,
        image: BUSYBOX,
        ...(isolation === undefined ? {} : { isolation }),
      });
      sandboxes.set(sandbox.id, sandbox);
      return sandbox.id;
    },
    run: async (id, [program = '', ...args]) => {
      const result = await sandboxes.get(id)?.exec(program, args);
      if (result?.code !== 0) throw new Error(`${program} ended with ${result?.code}`);
    },
    remove: async (id) => {
      await sandboxes.get(id)?.remove();
      sandboxes.delete(id);
    },
    memoryBytes: () => sumOf(readTree(server.pid)) + sumOf(readTree(server.engine.wrapperPid)),
  };
}

/** The image was used before, and the next warm sandbox is ready; not for the first one. */
async function untilOneWaits(server: TestServer): Promise<void> {
  const isThere = async () => {
    const { waiting, handedOut, missed } = await server.engine.client.pool();
    return waiting.length > 0 || handedOut + missed === 0;
  };
  await waitUntil(isThere, { timeoutMs: REST_TIMEOUT_MS, what: 'a sandbox waits' });
}

async function record(table: string): Promise<void> {
  await writeBetween('docs/promises.md', 'peers', table);
  await writePicture(
    PICTURE,
    drawBars(
      rows.slice(0, 2).map(({ what, values }) => ({
        title: what,
        bars: contenders.map(({ name }, index) => ({ name, value: values[index] ?? 0 })),
      })),
    ),
  );
  const about =
    'with a class named nothing is kept warm; [the whole table](docs/promises.md#beside-docker-and-podman).';
  await writeBetween(
    'README.md',
    'peers',
    `![Beside Docker and Podman](${PICTURE})\n\n${loads()} Each ran in turn with the others; ${about}`,
  );
}

function loads(): string {
  return describeRun({ before: begun, after: loadavg()[0] ?? 0 });
}
