import assert from 'node:assert/strict';
import { changeStore } from '../../../packages/server/src/local-commands/local-store.ts';
import { createPreviewToken, listPreviewTokens } from '../../../packages/server/src/store/preview-tokens.ts';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Reply } from './world.ts';

type Body = Reply['body'];

const MAX_PREVIEWS = 1000;
const PORT = { port: 3000 };
const of = ({ id }: Body) => ({ params: { sandbox_id: id } });
const UNKNOWN = { id: UNKNOWN_ID };

let box: Body;

export const previews = new Outcomes();

previews.phase('previews', {
  enter: async (world) => {
    box = await world.created();
  },
});
previews.add('previews.create', 'ok', async (call) => {
  const reply = await call('previews.create', { ...of(box), body: { ...PORT, expires_in_secs: 60 } });
  assert.ok(new URL(reply.body.url).hostname.startsWith(`3000-${box.slug}.`));
  return reply;
});
previews.add('previews.create', 'sandbox_not_found', (call) =>
  call('previews.create', { ...of(UNKNOWN), body: PORT }),
);
previews.add('previews.open', 'ok', async (call) => {
  const reply = await call('previews.open', { ...of(box), body: { ...PORT, expires_in_secs: 60 } });
  assert.match(new URL(reply.body.url).search, /^\?svc_preview_token=svc_preview_/);
  return reply;
});
previews.add('previews.open', 'sandbox_not_found', (call) =>
  call('previews.open', { ...of(UNKNOWN), body: PORT }),
);
previews.add('previews.list', 'ok', async (call) => {
  const { id, token } = (await call('previews.create', { ...of(box), body: PORT })).body;
  const reply = await call('previews.list', of(box));
  assert.ok(reply.body.some((each: Body) => each.id === id));
  assert.ok(!JSON.stringify(reply.body).includes(token));
  return reply;
});
previews.add('previews.list', 'sandbox_not_found', (call) => call('previews.list', of(UNKNOWN)));
previews.add('previews.revoke', 'ok', async (call) => {
  const { id } = (await call('previews.create', { ...of(box), body: PORT })).body;
  const reply = await call('previews.revoke', { params: { sandbox_id: box.id, preview_id: id } });
  assert.ok(!(await call('previews.list', of(box))).body.some((each: Body) => each.id === id));
  return reply;
});
previews.add('previews.revoke', 'not_found', async (call) => {
  return await call('previews.revoke', { params: { sandbox_id: box.id, preview_id: UNKNOWN_ID } });
});
previews.add('previews.revoke', 'sandbox_not_found', async (call) => {
  return await call('previews.revoke', { params: { sandbox_id: UNKNOWN_ID, preview_id: UNKNOWN_ID } });
});

previews.phase('previews of a sandbox that has as many as it may', {
  // In the store itself: a thousand requests would take seconds.
  enter: async ({ place }) =>
    await changeStore(place, async (db) => {
      const sandbox = { id: box.id, organizationId: box.org_id };
      for (let made = (await listPreviewTokens(db, box.id)).length; made < MAX_PREVIEWS; made += 1) {
        await createPreviewToken(db, { sandbox, port: PORT.port, expiresAt: null });
      }
    }),
});
previews.add('previews.create', 'quota_exceeded', (call) =>
  call('previews.create', { ...of(box), body: PORT }),
);

previews.add('previews.open', 'quota_exceeded', (call) => call('previews.open', { ...of(box), body: PORT }));

export const withoutPreviews = new Outcomes();
withoutPreviews.phase('previews of a server without a domain for them');
withoutPreviews.add('previews.create', 'unavailable', async (call, world) => {
  return await call('previews.create', { ...of(await world.created()), body: PORT });
});
withoutPreviews.add('previews.open', 'unavailable', async (call, world) => {
  return await call('previews.open', { ...of(await world.created()), body: PORT });
});
