import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { SELF_HOSTED_PLAN } from '@svc/contract/rest';
import { setQuotas } from '../../accounting/set-quotas.ts';
import { putPlans } from '../../store/plans.ts';
import { addSandbox } from '../../testing/stored-sandbox.ts';
import { addRun, addSnapshot, addStretch, addVolume } from '../../testing/stored-usage.ts';
import { monthOf } from '../../accounting/time-window.ts';
import { startWithPeople } from '../../testing/people.ts';

const SPEC = { image: { type: 'oci' as const, reference: 'x' } };
const HOUR_MS = 3_600_000;
const GIB = 2 ** 30;

async function startAcme(t: TestContext) {
  await passMonthEnd();
  const people = await startWithPeople(t);
  const [owner, member] = await Promise.all(['owner', 'member'].map(people.person));
  assert.ok(owner && member);
  const id = await people.organization('acme', { owner, member });
  await people.organization('other', {});
  const key = await people.apiKey('acme');
  const get = (path: string, by = key) => people.server.rest('GET', path, { key: by });
  const { database } = people.server;
  const run = async (name: string, started: string, ended: string | null, sizes = {}) => {
    const sandbox = await addSandbox(database, { namespace: 'acme', name, spec: SPEC, ports: [] });
    await addRun(database, { sandboxId: sandbox.id, organizationId: id, started, ended, ...sizes });
    return sandbox;
  };
  return { ...people, database, id, key, owner, member, get, run };
}

test('usage is reported per sandbox and day, with a directory of the sandboxes', async (t) => {
  const { get, run, apiKey, member, database } = await startAcme(t);
  const sizes = { vcpus: 2, memory: 512, disk: 4096 };
  const a = await run('a', '2026-02-01T23:59:59.000Z', '2026-02-02T00:00:02.500Z', sizes);
  await run('b', '2026-03-01T00:00:00.000Z', '2026-03-01T00:00:01.000Z');
  await database.updateTable('sandboxes').set({ removed_at: '2026-03-02T00:00:00.000Z' }).execute();
  const path = '/billing/usage/sandbox?from=2026-02-01T00:00:00Z&to=2026-03-01T01:00:00%2B01:00';
  const { status, body } = await get(path);
  assert.equal(status, 200);
  assert.deepEqual(body, {
    rows: [
      {
        sandbox_id: a.id,
        day: '2026-02-01T00:00:00.000Z',
        vcpu_seconds: 2,
        mem_mib_seconds: 512,
        disk_mib_seconds: 4096,
      },
      {
        sandbox_id: a.id,
        day: '2026-02-02T00:00:00.000Z',
        vcpu_seconds: 5,
        mem_mib_seconds: 1280,
        disk_mib_seconds: 10_240,
      },
    ],
    sandboxes: [{ id: a.id, name: 'a', slug: a.slug }],
  });
  assert.deepEqual((await get(`/orgs/acme${path}`, member.key)).body, body);
  assert.deepEqual((await get(path, await apiKey('other'))).body, { rows: [], sandboxes: [] });
});

test('without a window usage is that of this month, and running sandboxes count until now', async (t) => {
  const { get, run } = await startAcme(t);
  const { startMs } = monthOf(Date.now());
  await run('old', new Date(startMs - HOUR_MS).toISOString(), new Date(startMs).toISOString());
  const began = Date.now() - 1500;
  await run('new', new Date(began).toISOString(), null);
  const elapsed = () => (Date.now() - Math.max(began, startMs)) / 1000;
  const least = elapsed();
  const { body } = await get('/billing/usage/sandbox');
  const seconds = body.rows.reduce((sum: number, row: { vcpu_seconds: number }) => sum + row.vcpu_seconds, 0);
  assertBetween(seconds, least, elapsed(), 0.001);
  assert.deepEqual(
    body.sandboxes.map(({ name }: { name: string }) => name),
    ['new'],
  );
});

test('a window that makes no sense is refused by the name of its field', async (t) => {
  const { get } = await startAcme(t);
  const bad: readonly [string, string][] = [
    ['from=yesterday', 'from'],
    ['to=2026-01-01', 'to'],
    ['from=2026-13-01T00:00:00Z', 'from'],
    ['from=2026-02-30T00:00:00Z', 'from'],
    ['to=2026-01-01T24:00:01Z', 'to'],
    ['to=9999-12-31T23:59:59-23:59', 'to'],
    ['from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', 'from'],
    ['from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z', 'from'],
    ['from=2999-01-01T00:00:00Z', 'from'],
    ['to=2001-01-01T00:00:00Z', 'from'],
    ['until=2026-01-01T00:00:00Z', 'until'],
    ['from=2026-01-01T00:00:00Z&from=2026-01-02T00:00:00Z', 'from'],
  ];
  for (const kind of ['sandbox', 'storage']) {
    for (const [query, field] of bad) {
      const { status, body } = await get(`/billing/usage/${kind}?${query}`);
      assert.equal(status, 400, query);
      assert.equal(body.error.code, 'invalid_request');
      assert.equal(body.error.details.field, field, query);
    }
  }
});

test('storage is reported per volume and day, also of removed volumes', async (t) => {
  const { get, database, id } = await startAcme(t);
  const volumeId = await addVolume(database, id, null);
  const volume = { volumeId, organizationId: id, bytes: 10 * 1024 * 1024 };
  await addStretch(database, volume, '2026-01-01T12:00:00.000Z', '2026-01-02T12:00:00.000Z');
  await database.updateTable('volumes').set({ removed_at: '2026-01-03T00:00:00.000Z' }).execute();
  const { status, body } = await get(
    '/billing/usage/storage?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:01Z',
  );
  assert.equal(status, 200);
  assert.deepEqual(body, {
    rows: [
      { volume_id: volumeId, day: '2026-01-01T00:00:00.000Z', mib_seconds: 432_000 },
      { volume_id: volumeId, day: '2026-01-02T00:00:00.000Z', mib_seconds: 10 },
    ],
    volumes: [{ id: volumeId, name: volumeId }],
  });
});

test('an organization on no plan of the operator pays nothing', async (t) => {
  const { get, run } = await startAcme(t);
  await run('a', new Date(Date.now() - 1000).toISOString(), null);
  const { status, body } = await get('/billing');
  assert.equal(status, 200);
  assert.partialDeepStrictEqual(body, {
    plan: { name: 'self_hosted', display_name: 'Self-hosted', has_custom_billing_terms: false },
    effective_state: 'free',
    is_suspended: false,
    current_period_ends_at: new Date(monthOf(Date.now()).endMs).toISOString(),
  });
  assert.ok(Object.values(body.effective_pricing).every((price) => price === null));
  const usage = (await get('/billing/usage')).body;
  assert.equal(usage.total_cents, 0);
  assert.equal(usage.projected_spend_cents, 0);
  assert.equal(usage.storage_gib, null);
  assert.deepEqual((await get('/billing/plans')).body, [SELF_HOSTED_PLAN]);
});

test('usage is priced beyond what the plan includes, and projected to the end of the month', async (t) => {
  const { get, run, database, id } = await startAcme(t);
  const { startMs, endMs } = monthOf(Date.now());
  await putPlans(database, [
    {
      ...SELF_HOSTED_PLAN,
      subscription_price_cents: 500,
      usage_vcpu_hour_usd: 10,
      included_vcpu_hours: 1,
      usage_storage_gib_month_usd: 2,
      usage_snapshot_storage_gib_month_usd: 1,
    },
  ]);
  const [began, ended] = [new Date(startMs), new Date(startMs + HOUR_MS)].map((time) => time.toISOString());
  assert.ok(began && ended);
  await run('a', began, ended, { vcpus: 4 });
  const volume = { volumeId: await addVolume(database, id, null), organizationId: id, bytes: 8 * GIB };
  await addStretch(database, volume, began, new Date(endMs).toISOString());
  await addSnapshot(database, id, 3 * GIB, began, null);
  const earliest = Date.now();
  const { body } = await get('/billing/usage');
  const latest = Date.now();
  /** What `read` says of some moment at which the answer may have been given. */
  const assertThen = (seen: number, read: (nowMs: number) => number, tolerance: number) =>
    assertBetween(seen, read(earliest), read(latest), tolerance);
  const vcpuHours = (nowMs: number) => 4 * Math.min(1, (nowMs - startMs) / HOUR_MS);
  const elapsed = (nowMs: number) => (nowMs - startMs) / (endMs - startMs);
  const item = (name: string) => body.line_items.find((each: { name: string }) => each.name === name);
  assert.deepEqual(item('Self-hosted'), {
    name: 'Self-hosted',
    quantity: 1,
    unit: 'month',
    amount_cents: 500,
  });
  assertThen(item('vCPU').quantity, vcpuHours, 0.01);
  assertThen(item('vCPU').amount_cents, (nowMs) => Math.max(0, vcpuHours(nowMs) - 1) * 1000, 10);
  assertThen(item('Volume storage').quantity, (nowMs) => 8 * elapsed(nowMs), 0.01);
  assertThen(item('Volume storage').amount_cents, (nowMs) => 16 * elapsed(nowMs) * 100, 5);
  const sum = body.line_items.reduce(
    (total: number, each: { amount_cents: number }) => total + each.amount_cents,
    0,
  );
  assert.equal(body.total_cents, sum);
  assertThen(body.projected_spend_cents, (nowMs) => 500 + (sum - 500) / elapsed(nowMs), 10);
  assert.ok(body.projected_spend_cents >= body.total_cents);
  assert.deepEqual([body.storage_gib, body.snapshot_storage_gib], [8, 3]);
  assert.deepEqual([body.period_start, body.period_end], [began, new Date(endMs).toISOString()]);
  const metrics = new Set(body.daily.map(({ metric }: { metric: string }) => metric));
  assert.equal(metrics.size, 5);
  const cpu = body.daily.find(({ metric }: { metric: string }) => metric === 'vcpu_hours');
  assertThen(cpu.quantity, vcpuHours, 0.01);
  assert.equal(cpu.date, began);
  assert.equal((await get('/billing')).body.effective_state, 'active');
});

test('a suspended organization with limits of its own says so', async (t) => {
  const { get, database, id } = await startAcme(t);
  await setQuotas(database, id, { is_suspended: true, max_sandboxes: 1 });
  const { body } = await get('/billing');
  assert.equal(body.effective_state, 'suspended');
  assert.equal(body.is_suspended, true);
  assert.equal(body.plan.has_custom_billing_terms, true);
});

test('there are no invoices, and an invoice that is asked for is not found', async (t) => {
  const { get } = await startAcme(t);
  const list = await get('/billing/invoices');
  assert.deepEqual([list.status, list.body], [200, []]);
  const one = await get('/billing/invoices/in_1');
  assert.deepEqual([one.status, one.body.error.code], [404, 'not_found']);
});

test('an owner chooses among the offered plans, other members cannot', async (t) => {
  const { server, owner, member, database, eventTypes, id, get } = await startAcme(t);
  const choose = (plan: unknown, key: string) =>
    server.rest('PUT', '/orgs/acme/billing/plan', { key, body: { plan } });
  assert.match((await choose('pro', owner.key)).body.error.message, /offers none/);
  await putPlans(database, [
    { ...SELF_HOSTED_PLAN, name: 'free' },
    { ...SELF_HOSTED_PLAN, name: 'pro', is_default: false, self_serve: true, max_sandboxes: 7 },
  ]);
  assert.equal((await choose('pro', member.key)).status, 403);
  for (const plan of ['free', 'gold', '', 3]) {
    const { status, body } = await choose(plan, owner.key);
    assert.deepEqual([status, body.error.details.field], [400, 'plan'], String(plan));
  }
  const { status, body } = await choose('pro', owner.key);
  assert.deepEqual([status, body.plan.name], [200, 'pro']);
  assert.equal((await get('/quotas')).body.max_sandboxes, 7);
  assert.deepEqual(await eventTypes(id), ['quota_changed']);
});

test('callers without a credential of the organization learn nothing about its bills', async (t) => {
  const { server, person } = await startAcme(t);
  const outsider = await person('stranger');
  for (const path of [
    '',
    '/usage',
    '/usage/sandbox',
    '/usage/storage',
    '/plans',
    '/invoices',
    '/invoices/1',
  ]) {
    assert.equal((await server.rest('GET', `/billing${path}`)).status, 401);
    assert.equal((await server.rest('GET', `/billing${path}`, { key: outsider.key })).status, 401);
    assert.equal((await server.rest('GET', `/orgs/acme/billing${path}`, { key: outsider.key })).status, 403);
  }
});

/** In whichever order the two are. */
function assertBetween(seen: number, one: number, other: number, tolerance: number): void {
  const [least, most] = [Math.min(one, other) - tolerance, Math.max(one, other) + tolerance];
  assert.ok(seen >= least && seen <= most, `${seen} is not between ${least} and ${most}`);
}

/** A month that ends in the middle of a test would end what the test is about. */
async function passMonthEnd(): Promise<void> {
  const leftMs = monthOf(Date.now()).endMs - Date.now();
  if (leftMs < 30_000) await delay(leftMs + 1000);
}
