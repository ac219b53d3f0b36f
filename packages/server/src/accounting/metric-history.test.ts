import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { SandboxUsageReport } from '@svc/contract/orchestrator';
import { pino } from 'pino';
import { listSamples } from '../store/metric-samples.ts';
import { openStore } from '../store/open-store.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import { makeFolder } from '../testing/test-server.ts';
import { MetricHistory } from './metric-history.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const signal = new AbortController().signal;

/** A history whose measurements and times the test chooses, beginning with a whole minute. */
async function prepare(t: TestContext) {
  const database = await openStore(sqliteDialect(join(await makeFolder(t), 'store.db')));
  t.after(() => database.destroy());
  let reports: readonly SandboxUsageReport[] = [];
  const create = () =>
    new MetricHistory({
      database,
      orchestrator: { metrics: async () => await Promise.resolve(reports) },
      sampleMs: 5000,
      logger: pino({ level: 'silent' }),
    });
  const startMs = Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS;
  const history = create();
  const record = async (atMs: number, given: readonly Partial<SandboxUsageReport>[], by = history) => {
    reports = given.map((report) => ({
      ...IDLE,
      sampledAt: new Date(startMs + atMs).toISOString(),
      ...report,
    }));
    await by.record(startMs + atMs, signal);
  };
  const read = async (fromMs: number, toMs: number, by = history) =>
    (await by.read('a', startMs + fromMs, startMs + toMs)).map(({ atMs, values }) => [
      atMs - startMs,
      values['cpu'],
    ]);
  return { database, startMs, history, create, record, read };
}

const IDLE: SandboxUsageReport = {
  id: 'a',
  sampledAt: '',
  cpuPercent: 0,
  memoryBytes: 0,
  memoryLimitBytes: 0,
  diskUsedBytes: 0,
  diskTotalBytes: 0,
  networkReceivedBytes: 0,
  networkSentBytes: 0,
  processes: 0,
};

test('a measurement that is reported twice counts once', async (t) => {
  const { record, read } = await prepare(t);
  await record(0, [{ cpuPercent: 1, sampledAt: 'first' }]);
  await record(5000, [{ cpuPercent: 1, sampledAt: 'first' }]);
  await record(10_000, [{ cpuPercent: 2, sampledAt: 'second' }]);
  assert.deepEqual(await read(0, MINUTE_MS), [
    [0, 1],
    [10_000, 2],
  ]);
});

test('the latest measurements are returned as they were made', async (t) => {
  const { record, read } = await prepare(t);
  await record(0, [{ cpuPercent: 1 }]);
  await record(5000, [{ cpuPercent: 2 }, { id: 'b', cpuPercent: 9 }]);
  assert.deepEqual(await read(0, MINUTE_MS), [
    [0, 1],
    [5000, 2],
  ]);
  assert.deepEqual(await read(1, MINUTE_MS), [[5000, 2]]);
  assert.deepEqual(await read(0, 5000), [[0, 1]]);
});

test('a minute that is over becomes one row of means', async (t) => {
  const { record, database, startMs } = await prepare(t);
  await record(0, [{ cpuPercent: 1, memoryBytes: 10 }]);
  await record(30_000, [{ cpuPercent: 4, memoryBytes: 20 }]);
  assert.deepEqual(await listSamples(database, 'a', startMs, startMs + HOUR_MS), []);
  await record(MINUTE_MS, [{ cpuPercent: 50 }]);
  const [row, ...more] = await listSamples(database, 'a', startMs, startMs + HOUR_MS);
  assert.deepEqual(more, []);
  assert.equal(row?.atMs, startMs);
  assert.deepEqual([row.values['cpu'], row.values['memory_bytes']], [2.5, 15]);
});

test('rates come from counters, and a counter that begins anew is no negative rate', async (t) => {
  const { record, history, startMs } = await prepare(t);
  await record(0, [{ networkReceivedBytes: 1000, networkSentBytes: 10 }]);
  await record(5000, [{ networkReceivedBytes: 6000, networkSentBytes: 10 }]);
  await record(10_000, [{ networkReceivedBytes: 50, networkSentBytes: 0 }]);
  const samples = await history.read('a', startMs, startMs + MINUTE_MS);
  assert.deepEqual(
    samples.map(({ values }) => [values['net_rx_bytes_rate'], values['net_tx_bytes_rate']]),
    [
      [0, 0],
      [1000, 0],
      [10, 0],
    ],
  );
});

test('several servers on one store write each minute once, and after a restart the past comes from the rows', async (t) => {
  const { record, read, create, database, startMs } = await prepare(t);
  const other = create();
  for (const atMs of [0, 20_000]) {
    await record(atMs, [{ cpuPercent: 5 }]);
    await record(atMs + 1, [{ cpuPercent: 7 }], other);
  }
  await record(MINUTE_MS, []);
  await record(MINUTE_MS + 1, [], other);
  assert.equal((await listSamples(database, 'a', startMs, startMs + HOUR_MS)).length, 1);
  const restarted = create();
  await record(MINUTE_MS + 5000, [{ cpuPercent: 8 }], restarted);
  assert.deepEqual(await read(0, HOUR_MS, restarted), [
    [0, 5],
    [MINUTE_MS + 5000, 8],
  ]);
});

test('memory holds an hour, and the store a week', async (t) => {
  const { record, read, database, startMs } = await prepare(t);
  for (let count = 0; count < 800; count++) await record(count * 5000, [{ cpuPercent: count }]);
  const seen = await read(0, 2 * HOUR_MS);
  // The first 80 samples were dropped from memory: their minutes come from rows.
  assert.deepEqual(seen[0], [0, 5.5]);
  assert.deepEqual(seen.at(-1), [799 * 5000, 799]);
  assert.ok(seen.length < 800 && seen.length > 720);
  const week = 7 * 24 * HOUR_MS;
  await record(week + 2 * HOUR_MS, [{ id: 'b' }]);
  assert.deepEqual(await listSamples(database, 'a', startMs, startMs + HOUR_MS), []);
  assert.deepEqual(await read(0, 2 * HOUR_MS), []);
});

test('500 sandboxes are measured and stored in little time', async (t) => {
  const { record, database } = await prepare(t);
  const reports = Array.from({ length: 500 }, (_, index) => ({ id: `s${index}`, cpuPercent: index }));
  const before = process.cpuUsage();
  for (let count = 0; count <= 12; count++) await record(count * 5000, reports);
  // Not how long it took: others work on this machine too.
  const { user, system } = process.cpuUsage(before);
  const workMs = (user + system) / 1000;
  const { count } = await database
    .selectFrom('metric_samples')
    .select((build) => build.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  assert.equal(count, 500);
  // Of a minute.
  assert.ok(workMs < 2000, `${workMs} ms`);
  t.diagnostic(`13 measurements of 500 sandboxes: ${Math.round(workMs)} ms`);
});
