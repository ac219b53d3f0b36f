import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { TestServer } from './start-server.ts';
import { BUSYBOX } from '../engine/start-engine.ts';

const IMAGE = { image: { type: 'oci', reference: BUSYBOX }, resources: { vcpus: 2, memory_mib: 64 } };

/** Tests look into it in many ways. */
// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

let server: TestServer;

before(async () => {
  server = await TestServer.start();
});
after(() => server.destroy());

async function rest(method: string, path: string, body?: unknown) {
  const response = await fetch(`${server.url}/v1${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  return { status: response.status, body: (await response.json()) as Json };
}

async function runOnce(name: string): Promise<Json> {
  const started = await rest('POST', '/sandboxes?start=true&wait_for=running&wait_timeout=60', {
    name,
    ...IMAGE,
  });
  assert.equal(started.body.status, 'running', JSON.stringify(started.body));
  return started.body;
}

async function stop(id: string): Promise<Json> {
  await rest('POST', `/sandboxes/${id}/stop`);
  let seen: Json;
  await waitUntil(
    async () => {
      seen = (await rest('GET', `/sandboxes/${id}`)).body;
      return seen.status === 'stopped';
    },
    { timeoutMs: 30_000, what: 'it is stopped' },
  );
  return seen;
}

test('usage of a short run is its length times its size, also after the sandbox is deleted', async () => {
  const { id, name, slug } = await runOnce('billed');
  const { started_at: startedAt, stopped_at: stoppedAt } = await stop(id);
  const seconds = (Date.parse(stoppedAt) - Date.parse(startedAt)) / 1000;
  await rest('DELETE', `/sandboxes/${id}`);
  const query = `from=${startedAt}&to=${new Date(Date.parse(stoppedAt) + 1000).toISOString()}`;
  const { status, body } = await rest('GET', `/billing/usage/sandbox?${query}`);
  assert.equal(status, 200);
  const rows = body.rows.filter((row: Json) => row.sandbox_id === id);
  const sum = (field: string) => rows.reduce((total: number, row: Json) => total + row[field], 0);
  assert.ok(seconds > 0);
  assert.ok(Math.abs(sum('vcpu_seconds') - 2 * seconds) < 0.002);
  assert.ok(Math.abs(sum('mem_mib_seconds') - 64 * seconds) < 0.07);
  assert.deepEqual(
    body.sandboxes.find((entry: Json) => entry.id === id),
    { id, name, slug },
  );
  const quotas = (await rest('GET', '/quotas')).body;
  assert.ok(quotas.vcpu_hours_used >= (2 * seconds) / 3600 - 0.001);
  const summary = (await rest('GET', '/billing/usage')).body;
  assert.ok(summary.line_items.some((item: Json) => item.unit === 'vCPU-hour' && item.quantity > 0));
});

test('metrics of a running sandbox come from the kernel', async () => {
  const { id } = await runOnce('measured');
  let metrics: Json;
  await waitUntil(
    async () => {
      ({ metrics } = (await rest('GET', `/sandboxes/${id}/metrics?range_secs=60&step_secs=5`)).body);
      return metrics.memory_bytes.length > 0;
    },
    { timeoutMs: 30_000, what: 'a sample is there' },
  );
  const latest = (name: string) => metrics[name][0].samples.at(-1)[1];
  assert.equal(latest('memory_limit_bytes'), 64 * 1024 * 1024);
  assert.ok(latest('memory_bytes') > 0 && latest('memory_bytes') <= 64 * 1024 * 1024);
  assert.ok(latest('disk_total_bytes') > 0);
  assert.ok(latest('processes') >= 1);
  await stop(id);
});

test('capabilities report the isolation classes of this host, and why one is missing', async () => {
  const { status, body } = await rest('GET', '/capabilities');
  assert.equal(status, 200);
  const names = new Set(body.isolation.classes.map((each: Json) => each.name));
  assert.deepEqual(names, new Set(['microvm', 'gvisor', 'container']));
  assert.ok(
    body.isolation.classes.some((each: Json) => each.is_available && each.name === body.isolation.default),
  );
  assert.ok(body.isolation.classes.every((each: Json) => each.reason.length > 0));
});

test('operations are in the audit events, and their chain is whole', async () => {
  const { body } = await rest('GET', '/events?limit=100');
  const types = new Set(body.data.map((event: Json) => event.event_type));
  for (const type of ['sandbox_created', 'sandbox_started', 'sandbox_stopped', 'sandbox_deleted']) {
    assert.ok(types.has(type), type);
  }
  const { verifyLocalAudit } = await import('@svc/server/local');
  const [report] = await verifyLocalAudit({ dataFolder: server.engine.folder }, 'default');
  assert.equal(report?.broken, null);
  assert.ok((report?.intact ?? 0) >= body.data.length);
  const [newest] = body.data;
  assert.deepEqual((await rest('GET', `/events/${newest.id}`)).body, newest);
});

test('plans come from a file, and a bad file keeps the server from starting', async () => {
  const path = join(server.engine.folder, 'plans.json');
  await writeFile(path, JSON.stringify({ plans: [{ name: 'small', is_default: true, max_sandboxes: 0 }] }), {
    mode: 0o644,
  });
  await server.stop();
  const limited = server.with('--plans', path);
  await limited.launch();
  try {
    const url = `${limited.url}/v1`;
    const plans = (await (await fetch(`${url}/billing/plans`)).json()) as Json[];
    assert.deepEqual(
      plans.map(({ name }) => name),
      ['small'],
    );
    const refused = await fetch(`${url}/sandboxes`, {
      method: 'POST',
      body: JSON.stringify({ name: 'late', ...IMAGE }),
      headers: { 'content-type': 'application/json' },
    });
    assert.equal(refused.status, 429);
    const { error } = (await refused.json()) as Json;
    assert.deepEqual([error.code, error.details.limit], ['quota_exceeded', 'max_sandboxes']);
  } finally {
    await limited.stop();
  }
  await writeFile(path, '{"plans":[{"name":"small","max_sandboxs":1}]}');
  const child = server.with('--plans', path).spawn();
  const code = await new Promise((resolve) => child.on('exit', resolve));
  assert.equal(code, 2);
  assert.match(await server.log(), /plans\[0\]\.max_sandboxs is not a known field/);
});
