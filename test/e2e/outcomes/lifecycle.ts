import assert from 'node:assert/strict';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Reply } from './world.ts';

type Body = Reply['body'];

const of = ({ id }: Body) => ({ params: { sandbox_id: id } });
const UNKNOWN = { id: UNKNOWN_ID };
const HOUR = { max_duration_secs: 3600 };
const OLD = { 'if-match': '"99999"' };

export const lifecycle = new Outcomes();

lifecycle.phase('lifetimes');
lifecycle.add('lifecycle.update', 'ok', async (call, world) => {
  const box = await world.running();
  const reply = await call('lifecycle.update', { ...of(box), body: HOUR });
  const { spec } = await world.server.engine.client.getSandbox(box.id);
  assert.equal(spec.lifecycle?.max_duration_secs, HOUR.max_duration_secs);
  assert.ok(Date.parse(reply.body.ends_at) > Date.now());
  await call('sandboxes.remove', of(box));
  return reply;
});
lifecycle.add('lifecycle.update', 'sandbox_not_found', (call) =>
  call('lifecycle.update', { ...of(UNKNOWN), body: HOUR }),
);
lifecycle.add('lifecycle.update', 'invalid_state_transition', async (call, world) => {
  return await call('lifecycle.update', { ...of(await world.created()), body: { ends_in_secs: 60 } });
});
lifecycle.add('lifecycle.update', 'precondition_failed', async (call, world) => {
  return await call('lifecycle.update', { ...of(await world.created()), body: HOUR, headers: OLD });
});
lifecycle.add('lifecycle.keepAlive', 'ok', async (call, world) => {
  const box = await world.running();
  const reply = await call('lifecycle.keepAlive', of(box));
  await call('sandboxes.remove', of(box));
  return reply;
});
lifecycle.add('lifecycle.keepAlive', 'sandbox_not_found', (call) => call('lifecycle.keepAlive', of(UNKNOWN)));
lifecycle.add('lifecycle.keepAlive', 'sandbox_not_running', async (call, world) => {
  return await call('lifecycle.keepAlive', of(await world.created()));
});
