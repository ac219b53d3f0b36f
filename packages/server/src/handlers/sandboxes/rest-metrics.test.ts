import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { SANDBOX_METRICS } from '@svc/contract/rest';
import { addSamples } from '../../store/metric-samples.ts';
import { startTestServer } from '../../testing/test-server.ts';

const MINUTE_MS = 60_000;

async function startWithSandbox(t: TestContext, metricSampleMs = 20) {
  const server = await startTestServer(t, { restSettings: { metricSampleMs } });
  await waitUntil(() => server.health.current.isHealthy);
  const create = async (name: string, query: string) =>
    (
      await server.rest('POST', `/sandboxes${query}`, {
        body: { name, image: { type: 'oci', reference: 'x' } },
      })
    ).body;
  const { id } = await create('a', '?start=true&wait_for=running');
  const get = (query = '', sandboxId = id) => server.rest('GET', `/sandboxes/${sandboxId}/metrics${query}`);
  return { server, id, create, get };
}

test('the usage of a running sandbox is reported under every name, in steps', async (t) => {
  const { id, get } = await startWithSandbox(t);
  await waitUntil(async () => (await get()).body.metrics.cpu.length > 0, 'a sample');
  const { status, body } = await get();
  assert.equal(status, 200);
  assert.equal(body.sandbox_id, id);
  assert.deepEqual(Object.keys(body.metrics).sort(), SANDBOX_METRICS.toSorted());
  assert.equal(body.range.end - body.range.start, 3_600_000);
  assert.equal(body.range.step_secs, 30);
  const values: Readonly<Record<string, number>> = {
    cpu: 1.5,
    memory_bytes: 3 * 1024 * 1024,
    memory_limit_bytes: 512 * 1024 * 1024,
    disk_used_bytes: 4096,
    disk_total_bytes: 4096 * 1024 * 1024,
    net_rx_bytes_rate: 0,
    net_tx_bytes_rate: 0,
    processes: 2,
  };
  for (const [metric, value] of Object.entries(values)) {
    const [series] = body.metrics[metric];
    assert.deepEqual(series.labels, {});
    const [atMs, seen] = series.samples.at(-1);
    assert.equal(seen, value, metric);
    assert.equal(atMs % 30_000, 0);
    assert.ok(atMs >= body.range.start && atMs < body.range.end);
  }
});

test('older metrics come from the store, a row for each minute', async (t) => {
  const { server, id, get } = await startWithSandbox(t);
  const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  await addSamples(server.database, [
    { ownerId: id, atMs: minute - 120 * MINUTE_MS, values: { cpu: 10 } },
    { ownerId: id, atMs: minute - 119 * MINUTE_MS, values: { cpu: 20 } },
    { ownerId: id, atMs: minute - 60 * 24 * 8 * MINUTE_MS, values: { cpu: 99 } },
    { ownerId: randomUUID(), atMs: minute - 119 * MINUTE_MS, values: { cpu: 77 } },
  ]);
  const { body } = await get('?range_secs=604800&step_secs=60');
  const samples: [number, number][] = body.metrics.cpu[0].samples;
  assert.deepEqual(samples.slice(0, 2), [
    [minute - 120 * MINUTE_MS, 10],
    [minute - 119 * MINUTE_MS, 20],
  ]);
  const wide = (await get('?range_secs=604800&step_secs=86400')).body.metrics.cpu[0].samples;
  assert.ok(wide.length <= 2);
  // They were not measured, so there is nothing to tell.
  assert.ok(
    body.metrics.processes.length === 0 || body.metrics.processes[0].samples[0][0] >= minute - MINUTE_MS,
  );
});

test('a sandbox that never ran has no data, and an unknown one is not found', async (t) => {
  const { create, get, server } = await startWithSandbox(t);
  const { id } = await create('b', '');
  const { status, body } = await get('', id);
  assert.equal(status, 200);
  assert.ok(SANDBOX_METRICS.every((metric) => body.metrics[metric].length === 0));
  const missing = await get('', randomUUID());
  assert.deepEqual([missing.status, missing.body.error.code], [404, 'sandbox_not_found']);
  await server.rest('DELETE', `/sandboxes/${id}`);
  assert.equal((await get('', id)).status, 404);
});

test('a range or step that makes no sense is refused by name', async (t) => {
  const { get } = await startWithSandbox(t);
  const bad: readonly [string, string][] = [
    ['?range_secs=604801', 'range_secs'],
    ['?range_secs=0', 'range_secs'],
    ['?range_secs=1h', 'range_secs'],
    ['?step_secs=4', 'step_secs'],
    ['?range_secs=60&step_secs=61', 'step_secs'],
    ['?step=5', 'step'],
  ];
  for (const [query, field] of bad) {
    const { status, body } = await get(query);
    assert.deepEqual(
      [status, body.error.code, body.error.details.field],
      [400, 'invalid_request', field],
      query,
    );
  }
  assert.equal((await get('?range_secs=3')).status, 200);
});

test('history stays readable while the engine is away', async (t) => {
  const { server, get } = await startWithSandbox(t);
  await waitUntil(async () => (await get()).body.metrics.cpu.length > 0, 'a sample');
  server.orchestrator.goAway();
  assert.equal((await get()).body.metrics.cpu.length, 1);
});

test('a sandbox that is not to be measured says so, on every surface, and what it wants can be asked for again', async (t) => {
  const { server, get } = await startWithSandbox(t);
  const runtime = { disable_metrics_sample: true, metrics_sample_interval_ms: 5000 };
  const made = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: { name: 'quiet', image: { type: 'oci', reference: 'x' }, runtime },
  });
  assert.equal(made.status, 200);
  const { disable_metrics_sample: disabled, metrics_sample_interval_ms: interval } = made.body.spec.runtime;
  assert.deepEqual({ disabled, interval }, { disabled: true, interval: 5000 });
  await waitUntil(async () => (await get()).body.metrics.cpu.length > 0, 'the other one is measured');
  assert.deepEqual((await get()).body.sampling, { disabled: false, interval_ms: 1000 });
  const { body } = await get('', made.body.id);
  assert.deepEqual(body.sampling, { disabled: true, interval_ms: 5000 });
  assert.deepEqual(body.metrics.cpu, []);
  const { result } = await server.call('sandbox.metrics.get', { namespace: 'default', sandbox: 'quiet' });
  const numbers = { cpu_usage: null, memory_usage: null, disk_usage: null };
  assert.deepEqual(result, {
    sandboxes: [{ namespace: 'default', name: 'quiet', running: true, ...numbers }],
  });
  const { body: refused } = await server.rest('POST', '/sandboxes', {
    body: {
      name: 'hasty',
      image: { type: 'oci', reference: 'x' },
      runtime: { metrics_sample_interval_ms: 10 },
    },
  });
  assert.match(JSON.stringify(refused), /runtime\.metrics_sample_interval_ms/);
});
