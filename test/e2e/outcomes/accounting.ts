import assert from 'node:assert/strict';
import { setLocalQuotas } from '@svc/server/local';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Reply } from './world.ts';

type Body = Reply['body'];

/** For `--plans`: organizations begin on the first one. */
export const PLANS = {
  plans: [
    { name: 'plain', is_default: true },
    { name: 'chosen', self_serve: true },
  ],
};

/** Quotas, usage, plans, events and what the server can do. */
export const accounting = new Outcomes();

/** Was run for a while and is deleted. */
let used: Body;
accounting.phase('quotas, usage, events and capabilities', {
  enter: async (world) => {
    used = await world.stopped();
    await world.caller('key')('sandboxes.remove', { params: { sandbox_id: used.id } });
  },
});

accounting.add('quotas.get', 'ok', async (call, { place, acme }) => {
  await setLocalQuotas(place, acme.slug, { max_sandboxes: 77 });
  const reply = await call('quotas.get');
  assert.equal(reply.body.max_sandboxes, 77);
  assert.ok(reply.body.vcpu_hours_used > 0);
  return reply;
});
accounting.add('billing.get', 'ok', async (call) => {
  const reply = await call('billing.get');
  assert.equal(reply.body.effective_state, 'free');
  return reply;
});
accounting.add('billing.listPlans', 'ok', async (call) => {
  const reply = await call('billing.listPlans');
  assert.deepEqual(
    reply.body.map(({ name }: Body) => name),
    PLANS.plans.map(({ name }) => name),
  );
  return reply;
});
accounting.add('billing.choosePlan', 'ok', async (call) => {
  const reply = await call('billing.choosePlan', { body: { plan: 'chosen' } });
  const refused = await call('billing.choosePlan', { body: { plan: 'plain' } });
  assert.deepEqual([refused.status, refused.body.error.details.field], [400, 'plan']);
  assert.equal((await call('billing.get')).body.plan.name, 'chosen');
  return reply;
});
accounting.add('billing.listInvoices', 'ok', (call) => call('billing.listInvoices'));
accounting.add('billing.getInvoice', 'not_found', async (call) => {
  return await call('billing.getInvoice', { params: { invoice_id: UNKNOWN_ID } });
});
accounting.add('billing.getUsage', 'ok', async (call) => {
  const reply = await call('billing.getUsage');
  const quantityOf = (unit: string) =>
    reply.body.line_items.find((item: Body) => item.unit === unit)?.quantity;
  assert.ok(quantityOf('vCPU-hour') > 0, JSON.stringify(reply.body));
  return reply;
});
accounting.add('billing.getSandboxUsage', 'ok', async (call) => {
  const query = { from: used.started_at, to: new Date(Date.parse(used.stopped_at) + 1).toISOString() };
  const reply = await call('billing.getSandboxUsage', { query });
  const seconds = (Date.parse(used.stopped_at) - Date.parse(used.started_at)) / 1000;
  const rows = reply.body.rows.filter((row: Body) => row.sandbox_id === used.id);
  const sum = rows.reduce((total: number, row: Body) => total + row.vcpu_seconds, 0);
  assert.ok(seconds > 0 && Math.abs(sum - seconds) < 0.002, `${sum} of ${seconds} s`);
  assert.ok(reply.body.sandboxes.some(({ id }: Body) => id === used.id));
  return reply;
});
accounting.add('billing.getStorageUsage', 'ok', (call) => call('billing.getStorageUsage'));

accounting.add('events.list', 'ok', async (call) => {
  const reply = await call('events.list', { query: { event_type: 'sandbox_deleted', sandbox_id: used.id } });
  assert.equal(reply.body.data.length, 1);
  assert.equal(reply.body.data[0].payload.sandbox_id, used.id);
  return reply;
});
accounting.add('events.list', 'invalid_cursor', (call) => call('events.list', { query: { cursor: 'none' } }));
accounting.add('events.get', 'ok', async (call) => {
  const [newest] = (await call('events.list', { query: { limit: 1 } })).body.data;
  const reply = await call('events.get', { params: { event_id: newest.id } });
  assert.deepEqual(reply.body, newest);
  return reply;
});
accounting.add('events.get', 'event_not_found', async (call) => {
  return await call('events.get', { params: { event_id: UNKNOWN_ID } });
});
accounting.add('capabilities.get', 'ok', async (call) => {
  const reply = await call('capabilities.get');
  assert.equal(reply.body.isolation.default, 'container');
  return reply;
});
