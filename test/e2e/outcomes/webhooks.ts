import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Call, type Reply } from './world.ts';

type Body = Reply['body'];
const NOBODYS = { params: { webhook_id: UNKNOWN_ID } };

/** Where organizations are told of their events. */
export const webhooks = new Outcomes();

let receiver: Server;

webhooks.phase('webhooks', {
  enter: async () => {
    receiver = createServer((request, response) => void request.resume().on('end', () => response.end('ok')));
    await once(receiver.listen(0, '127.0.0.1'), 'listening');
  },
  leave: async () => {
    receiver.close().closeAllConnections();
    await Promise.resolve();
  },
});

webhooks.add('webhooks.create', 'ok', async (call) => {
  const reply = await create(call);
  assert.match(reply.body.secret, /^whsec_/);
  await remove(call, reply.body);
  return reply;
});
webhooks.add('webhooks.create', 'quota_exceeded', async (call) => {
  const made: Body[] = [];
  for (;;) {
    const reply = await create(call);
    if (reply.status === 200) made.push(reply.body);
    else {
      for (const webhook of made) await remove(call, webhook);
      assert.equal(made.length, 16);
      return reply;
    }
  }
});
webhooks.add('webhooks.list', 'ok', (call) =>
  using(call, async (webhook) => {
    const reply = await call('webhooks.list');
    assert.deepEqual(
      reply.body.map(({ id }: Body) => id),
      [webhook.params.webhook_id],
    );
    return reply;
  }),
);
webhooks.add('webhooks.get', 'ok', (call) => using(call, (webhook) => call('webhooks.get', webhook)));
webhooks.add('webhooks.get', 'not_found', (call) => call('webhooks.get', NOBODYS));
webhooks.add('webhooks.update', 'ok', (call) =>
  using(call, async (webhook) => {
    const reply = await call('webhooks.update', { ...webhook, body: { enabled: false } });
    assert.equal(reply.body.enabled, false);
    return reply;
  }),
);
webhooks.add('webhooks.update', 'not_found', (call) => call('webhooks.update', NOBODYS));
webhooks.add('webhooks.remove', 'ok', async (call) => {
  const { id } = (await create(call)).body;
  return await call('webhooks.remove', { params: { webhook_id: id } });
});
webhooks.add('webhooks.remove', 'not_found', (call) => call('webhooks.remove', NOBODYS));
webhooks.add('webhooks.rotate', 'ok', (call) =>
  using(call, async (webhook) => {
    const reply = await call('webhooks.rotate', { ...webhook, body: { overlap_secs: 60 } });
    assert.match(reply.body.secret, /^whsec_/);
    return reply;
  }),
);
webhooks.add('webhooks.rotate', 'not_found', (call) => call('webhooks.rotate', NOBODYS));
webhooks.add('webhooks.test', 'ok', (call) =>
  using(call, async (webhook) => {
    const reply = await call('webhooks.test', webhook);
    assert.deepEqual([reply.body.status, reply.body.attempts[0].response], ['succeeded', 'ok']);
    return reply;
  }),
);
webhooks.add('webhooks.test', 'not_found', (call) => call('webhooks.test', NOBODYS));
webhooks.add('webhooks.deliveries', 'ok', (call) =>
  using(call, async (webhook) => {
    const { id } = (await call('webhooks.test', webhook)).body;
    const reply = await call('webhooks.deliveries', webhook);
    assert.deepEqual(
      reply.body.data.map((each: Body) => each.id),
      [id],
    );
    return reply;
  }),
);
webhooks.add('webhooks.deliveries', 'not_found', (call) => call('webhooks.deliveries', NOBODYS));
webhooks.add('webhooks.deliveries', 'invalid_cursor', (call) =>
  using(call, (webhook) => call('webhooks.deliveries', { ...webhook, query: { cursor: 'x' } })),
);
webhooks.add('webhooks.redeliver', 'ok', (call) =>
  using(call, async ({ params }) => {
    const { id } = (await call('webhooks.test', { params })).body;
    const reply = await call('webhooks.redeliver', { params: { ...params, delivery_id: id } });
    assert.deepEqual([reply.body.id, reply.body.attempts.length], [id, 2]);
    return reply;
  }),
);
webhooks.add('webhooks.redeliver', 'not_found', (call) =>
  using(call, ({ params }) => call('webhooks.redeliver', { params: { ...params, delivery_id: UNKNOWN_ID } })),
);

async function create(call: Call): Promise<Reply> {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  return await call('webhooks.create', { body: { url, event_types: ['snapshot.*'] } });
}

async function remove(call: Call, { id }: Body): Promise<void> {
  await call('webhooks.remove', { params: { webhook_id: id } });
}

/** With a webhook that is gone afterwards, so that there is room for the next one. */
async function using(
  call: Call,
  work: (webhook: { readonly params: { readonly webhook_id: string } }) => Promise<Reply>,
): Promise<Reply> {
  const { body } = await create(call);
  const reply = await work({ params: { webhook_id: body.id } });
  await remove(call, body);
  return reply;
}
