import { randomUUID } from 'node:crypto';
import { Sandbox } from '@svc/sdk';
import { withStore } from '../packages/server/src/local-commands/local-store.ts';
import type { Database, Tables } from '../packages/server/src/store/database.ts';
import { ensureOrganization } from '../packages/server/src/store/organizations.ts';
import { TestPostgres } from '../packages/server/src/testing/test-postgres.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import type { Benchmark, BenchmarkContext, Measurement } from './suite/benchmark.ts';
import { measureLoad, type LoadRequest } from './suite/http-load.ts';
import { SdkServer } from './suite/sdk-server.ts';

const CONNECTIONS = 32;
const DURATION_MS = 3000;
const SANDBOXES = 10_000;
const ROWS_PER_INSERT = 200;
const SECOND_MS = 1000;

/** Calls of the server over HTTP: rates with many connections, round trips with one. */
export const server: Benchmark = {
  name: 'server',
  description: 'health, get, a page of the list and command.run over HTTP, on SQLite and PostgreSQL',
  async run(context) {
    const sqlite = await measure('SQLite', undefined, context);
    await using postgres = await TestPostgres.start();
    return [...sqlite, ...(await measure('PostgreSQL', await postgres.createDatabase(), context))];
  },
};

async function measure(
  store: string,
  databaseUrl: string | undefined,
  { isQuick, signal, note }: BenchmarkContext,
): Promise<Measurement[]> {
  await using running = await SdkServer.start(databaseUrl === undefined ? {} : { databaseUrl });
  const { client, key, server: process } = running;
  const sandbox = await Sandbox.create({ client, name: 'bench', image: BUSYBOX, isolation: 'container' });
  const count = isQuick ? 100 : SANDBOXES;
  note(`${store}: ${count} sandboxes`);
  const place = { dataFolder: process.engine.folder, databaseUrl };
  await withStore(place, (database) => addSandboxes(database, count));
  const load = async (request: LoadRequest, connections = CONNECTIONS) => {
    signal.throwIfAborted();
    const options = { connections, durationMs: isQuick ? 300 : DURATION_MS };
    const authorized = { ...request, authorization: `Bearer ${key}` };
    // The first round only warms caches.
    await measureLoad(process.url, authorized, options);
    return await measureLoad(process.url, authorized, options);
  };
  const get = await load({ method: 'GET', path: `/v1/sandboxes/${sandbox.id}` });
  const labels = encodeURIComponent(JSON.stringify({ team: 'team-3', stage: 'live' }));
  const list = await load({ method: 'GET', path: `/v1/sandboxes?limit=100&labels=${labels}` }, 1);
  const name = store.toLowerCase();
  const measurements: Measurement[] = [
    { what: `${store}: get of a sandbox`, unit: '/s', values: [get.perSecond], promise: `get-${name}` },
    {
      what: `${store}: list page by two labels, ${count} sandboxes`,
      unit: 'ms',
      values: list.times,
      promise: `list-${name}`,
      percent: 99,
    },
  ];
  if (databaseUrl !== undefined) return measurements;
  const health = await load({ method: 'GET', path: '/api/v1/health' });
  const params = { sandbox: 'bench', command: 'true' };
  const body = JSON.stringify({ jsonrpc: '2.0', method: 'sandbox.command.run', params, id: 1 });
  const command = await load({ method: 'POST', path: '/api/v1/rpc', body }, 1);
  return [
    { what: 'health', unit: '/s', values: [health.perSecond], promise: 'health' },
    { what: 'sandbox.command.run true', unit: 'ms', values: command.times, promise: 'command-run' },
    ...measurements,
  ];
}

/** Fills the tables without going through the server, which would take hours. Times go back from now, a second each. */
async function addSandboxes(database: Database, count: number): Promise<void> {
  const organizationId = await ensureOrganization(database, 'default');
  const begin = Date.now() - count * SECOND_MS;
  const sandboxes = Array.from({ length: count }, (_, index) => {
    const id = randomUUID();
    const createdAt = new Date(begin + index * SECOND_MS).toISOString();
    return stoppedSandbox(id, organizationId, createdAt);
  });
  const labels = sandboxes.flatMap(({ id, created_at }, index) => {
    const common = { sandbox_id: id, organization_id: organizationId, created_at };
    return [
      { ...common, key: 'team', value: `team-${index % 10}` },
      { ...common, key: 'stage', value: index % 2 === 0 ? 'test' : 'live' },
    ];
  });
  await database.transaction().execute(async (transaction) => {
    for (const rows of inGroups(sandboxes)) await transaction.insertInto('sandboxes').values(rows).execute();
    for (const rows of inGroups(labels))
      await transaction.insertInto('sandbox_labels').values(rows).execute();
  });
}

function stoppedSandbox(id: string, organizationId: string, createdAt: string) {
  return {
    id,
    organization_id: organizationId,
    name: `bench-${id}`,
    slug: id,
    spec: JSON.stringify({
      image: { type: 'oci', reference: 'python' },
      resources: { vcpus: 1, memory_mib: 512 },
    }),
    ports: '[]',
    desired: 'stopped',
    observed: 'stopped',
    failure_message: null,
    created_at: createdAt,
    started_at: null,
    ended_at: null,
    removed_at: null,
  } satisfies Partial<Record<keyof Tables['sandboxes'], unknown>>;
}

function inGroups<Row>(rows: readonly Row[]): Row[][] {
  const groups = Array.from({ length: Math.ceil(rows.length / ROWS_PER_INSERT) });
  return groups.map((_, index) => rows.slice(index * ROWS_PER_INSERT, (index + 1) * ROWS_PER_INSERT));
}
