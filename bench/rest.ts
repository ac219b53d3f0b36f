import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { createApiKey } from '../packages/server/src/store/api-keys-and-tokens.ts';
import type { Database } from '../packages/server/src/store/database.ts';
import { openStore } from '../packages/server/src/store/open-store.ts';
import { ensureOrganization } from '../packages/server/src/store/organizations.ts';
import { postgresDialect } from '../packages/server/src/store/postgres.ts';
import { sqliteDialect } from '../packages/server/src/store/sqlite.ts';
import { TestPostgres } from '../packages/server/src/testing/test-postgres.ts';
import { ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { measureRate } from './http-load.ts';
import { readCpuMs } from './process-time.ts';
import { addEvents, addRuns, addSandboxes } from './rest-rows.ts';

const CONNECTIONS = 16;
const RATE_MS = 3000;
const GROWTH = 10;

/** The control plane's calls that need no engine, on both databases, and how they grow with ten times the rows. */
export const rest: Benchmark = {
  name: 'rest',
  description: 'get, list with labels, create, usage and events of the control plane, SQLite and PostgreSQL',
  promise:
    'get ≥ 5,000/s on one core; a list page ≤ 15 ms (p99) at 10,000 sandboxes and within 1.5× at 100,000; usage of 10,000 runs ≤ 50 ms',
  async run(context) {
    const sqlite = await onSqlite((fixture) => measure(fixture, context));
    await using postgres = await TestPostgres.start();
    return [...sqlite, ...(await onPostgres(postgres, (fixture) => measure(fixture, context)))];
  },
};

interface Fixture {
  readonly store: string;
  readonly database: Database;
  readonly organizationId: string;
  readonly key: string;
  /** Starts the server over the rows that are there. */
  readonly serve: () => Promise<Served>;
}

interface Served {
  readonly url: string;
  /** CPU time of the server so far. */
  cpuMs(): number;
  stop(): Promise<void>;
}

async function onSqlite<T>(work: (fixture: Fixture) => Promise<T>): Promise<T> {
  return await withFolder(async (folder) => {
    await mkdir(join(folder, 'server'));
    const database = await openStore(sqliteDialect(join(folder, 'server', 'store.db')));
    return await withFixture('SQLite', database, folder, [], work);
  });
}

async function onPostgres<T>(postgres: TestPostgres, work: (fixture: Fixture) => Promise<T>): Promise<T> {
  return await withFolder(async (folder) => {
    await mkdir(join(folder, 'server'));
    const url = await postgres.createDatabase();
    const database = await openStore(postgresDialect(url, pino({ level: 'silent' })));
    return await withFixture('PostgreSQL', database, folder, ['--database', url], work);
  });
}

async function withFixture<T>(
  store: string,
  database: Database,
  folder: string,
  args: readonly string[],
  work: (fixture: Fixture) => Promise<T>,
): Promise<T> {
  try {
    const organizationId = await ensureOrganization(database, 'bench');
    const credential = { name: 'bench', createdBy: null, expiresAt: null };
    const { secret: key } = await createApiKey(database, organizationId, credential);
    const serve = () => startServer(['--path', folder, '--port', '0', ...args]);
    return await work({ store, database, organizationId, key, serve });
  } finally {
    await database.destroy();
  }
}

async function measure(fixture: Fixture, context: BenchmarkContext): Promise<Measurement[]> {
  const { store, database, organizationId } = fixture;
  const sizes = context.isQuick
    ? { sandboxes: 100, runs: 100, events: 1000 }
    : { sandboxes: 10_000, runs: 10_000, events: 1_000_000 };
  context.note(
    `${store}: filling in ${sizes.sandboxes} sandboxes, ${sizes.runs} runs, ${sizes.events} events`,
  );
  const sandboxId = await addSandboxes(database, organizationId, sizes.sandboxes);
  await addRuns(database, organizationId, sizes.runs);
  await addEvents(database, organizationId, sizes.events / GROWTH);
  const small = await measureCalls(fixture, sandboxId, context);
  context.note(`${store}: filling in ten times as many`);
  await addSandboxes(database, organizationId, sizes.sandboxes * (GROWTH - 1));
  await addEvents(database, organizationId, sizes.events - sizes.events / GROWTH);
  const large = await measureCalls(fixture, sandboxId, context);
  return [
    { what: `${store}: get`, unit: '/s', values: [small.getRate], target: { atLeast: 5000 } },
    { what: `${store}: CPU of the server for 1,000 gets`, unit: 'ms', values: [small.getCpuMs] },
    { what: `${store}: get`, unit: 'ms', values: small.get },
    { what: `${store}: create, record only`, unit: 'ms', values: small.create },
    {
      what: `${store}: list page with labels, ${sizes.sandboxes} sandboxes`,
      unit: 'ms',
      values: small.list,
      target: { atMost: 15 },
    },
    {
      what: `${store}: list page with labels, ${sizes.sandboxes * GROWTH} sandboxes`,
      unit: 'ms',
      values: large.list,
    },
    ratio(`${store}: list page, ten times the sandboxes`, large.list, small.list, { atMost: 1.5 }),
    {
      what: `${store}: usage of ${sizes.runs} runs`,
      unit: 'ms',
      values: small.usage,
      target: { atMost: 50 },
    },
    { what: `${store}: events page, ${sizes.events} events`, unit: 'ms', values: large.events },
    ratio(`${store}: events page, ten times the events`, large.events, small.events),
  ];
}

async function measureCalls(
  fixture: Fixture,
  sandboxId: string,
  { isQuick, signal, note }: BenchmarkContext,
) {
  const { key, serve, store } = fixture;
  const served = await serve();
  const agent = new Agent({ keepAlive: true });
  try {
    note(`${store}: measuring`);
    const rounds = isQuick ? 5 : 300;
    const time = async (method: string, path: string, body?: () => object): Promise<number[]> => {
      const values: number[] = [];
      for (let round = -5; round < rounds; round += 1) {
        signal.throwIfAborted();
        const begun = performance.now();
        await send(served.url, { method, path, key, agent, ...(body === undefined ? {} : { body: body() }) });
        if (round >= 0) values.push(performance.now() - begun);
      }
      return values;
    };
    let created = 0;
    const labels = encodeURIComponent(JSON.stringify({ team: 'team-3', stage: 'live' }));
    const load = { connections: CONNECTIONS, durationMs: isQuick ? 300 : RATE_MS };
    const get = {
      method: 'GET' as const,
      path: `/v1/sandboxes/${sandboxId}`,
      authorization: `Bearer ${key}`,
    };
    // The first round only warms caches.
    await measureRate(served.url, get, load);
    const cpuBefore = served.cpuMs();
    const begun = performance.now();
    const getRate = await measureRate(served.url, get, load);
    // Other load on the machine lowers the rate but hardly changes the CPU time.
    const answers = (getRate * (performance.now() - begun)) / 1000;
    return {
      getRate,
      getCpuMs: ((served.cpuMs() - cpuBefore) * 1000) / answers,
      get: await time('GET', `/v1/sandboxes/${sandboxId}`),
      create: await time('POST', '/v1/sandboxes', () => ({
        name: `made-${process.hrtime.bigint()}-${(created += 1)}`,
        image: { type: 'oci', reference: 'python' },
      })),
      list: await time('GET', `/v1/sandboxes?limit=100&labels=${labels}`),
      usage: await time('GET', '/v1/billing/usage/sandbox'),
      events: await time('GET', '/v1/events?limit=100&event_type=sandbox_failed'),
    };
  } finally {
    agent.destroy();
    await served.stop();
  }
}

async function startServer(args: readonly string[]): Promise<Served> {
  const child: ChildProcess = fork(join(import.meta.dirname, 'rest-server.ts'), [...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [url] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error('the server did not start'))),
  ])) as [string];
  return {
    url,
    cpuMs: () => readCpuMs(child.pid ?? 0),
    stop: async () => {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}

async function send(
  url: string,
  options: {
    readonly method: string;
    readonly path: string;
    readonly key: string;
    readonly agent: Agent;
    readonly body?: object;
  },
): Promise<void> {
  const { method, path, key, agent, body } = options;
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${key}`,
    ...(body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  };
  await new Promise<void>((resolve, reject) => {
    const outgoing = request(`${url}${path}`, { method, agent, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${method} ${path} gave ${response.statusCode}`));
      response.resume();
      response.once('end', resolve);
    });
    outgoing.once('error', reject);
    outgoing.end(text);
  });
}

async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-rest-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
