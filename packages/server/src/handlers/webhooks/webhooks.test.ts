import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { ALL_NAMESPACES } from '@svc/contract';
import { signKey } from '../../access/signed-keys.ts';
import { SIGNING_KEY, startWithPeople } from '../../testing/people.ts';
import { signatureOf, startReceiver } from '../../testing/webhook-receiver.ts';
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from '../../webhooks/webhook-settings.ts';

const ANYWHERE = { mayReachInside: true };
/** As many attempts as ever, without the pauses. */
const QUICK = { pollMs: 10, retryMs: DEFAULT_WEBHOOK_SETTINGS.retryMs.map(() => 1) };

interface Options {
  readonly settings?: Partial<WebhookSettings>;
  readonly outbound?: { readonly mayReachInside: boolean };
}

async function startAcme(t: TestContext, { settings = {}, outbound = ANYWHERE }: Options = {}) {
  const people = await startWithPeople(t, {
    restSettings: { outbound, webhooks: { ...DEFAULT_WEBHOOK_SETTINGS, ...QUICK, ...settings } },
  });
  const [admin, member] = await Promise.all(['admin', 'member'].map(people.person));
  assert.ok(admin && member);
  const id = await people.organization('acme', { admin, member });
  await people.organization('other', {});
  const key = await people.apiKey('acme');
  const { server } = people;
  const rest = async (method: string, path: string, body?: unknown, by = key) =>
    await server.rest(method, path, { key: by, ...(body === undefined ? {} : { body }) });
  const create = async (url: string, more: object = {}) => {
    const { status, body } = await rest('POST', '/webhooks', { url, event_types: ['api_key.*'], ...more });
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  /** Something happens. */
  const happen = async (name = 'ci') => {
    const made = await rest('POST', '/orgs/acme/api-keys', { name }, admin.key);
    assert.equal(made.status, 200, JSON.stringify(made.body));
  };
  const deliveries = async (webhookId: string) =>
    (await rest('GET', `/webhooks/${webhookId}/deliveries`)).body.data;
  return { ...people, id, key, admin, member, rest, create, happen, deliveries };
}

test('an event that a webhook asks for arrives, signed with the secret that was shown once', async (t) => {
  const { create, happen, rest, deliveries, id, admin, server, key } = await startAcme(t);
  const receiver = await startReceiver(t);
  const { secret, ...webhook } = await create(receiver.url, {
    event_types: ['api_key_created'],
    description: 'ci',
  });
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.deepEqual(
    [webhook.url, webhook.description, webhook.event_types, webhook.enabled, webhook.disabled_reason],
    [receiver.url, 'ci', ['api_key_created'], true, null],
  );
  await happen('build');
  // Not asked for.
  await rest(
    'PUT',
    '/orgs/acme/secrets/TOKEN',
    { value: 'hunter2', allowed_hosts: [{ type: 'exact', value: 'a.b' }] },
    admin.key,
  );
  await waitUntil(() => receiver.received.length === 1, 'the event arrives');
  const [hook] = receiver.received;
  assert.ok(hook);
  assert.equal(hook.headers['webhook-signature'], signatureOf(secret, hook));
  assert.equal(hook.headers['content-type'], 'application/json');
  assert.ok(Math.abs(Number(hook.headers['webhook-timestamp']) - Date.now() / 1000) < 60);
  const [event] = (await server.rest('GET', '/events?event_type=api_key_created', { key })).body.data;
  assert.deepEqual(hook.body, {
    type: 'api_key_created',
    timestamp: event.timestamp,
    data: {
      event_id: event.id,
      org_id: id,
      sequence: event.sequence,
      category: 'api_key',
      actor: event.actor,
      payload: event.payload,
    },
  });
  await waitUntil(async () => (await deliveries(webhook.id))[0]?.status === 'succeeded', 'it is noted');
  const [delivery, ...more] = await deliveries(webhook.id);
  assert.deepEqual(
    [more.length, delivery.event_id, delivery.event_type, delivery.message_id, delivery.next_attempt_at],
    [0, event.id, 'api_key_created', hook.headers['webhook-id'], null],
  );
  assert.deepEqual(
    delivery.attempts.map(({ at: _at, latency_ms: _latency, ...rest_ }: Record<string, unknown>) => rest_),
    [{ status: 200, error: null, response: 'ok' }],
  );
});

test('a failed delivery is repeated with the same id, given up at last, and sent again on request', async (t) => {
  const { create, happen, rest, deliveries, eventTypes, id } = await startAcme(t);
  let isWell = false;
  const receiver = await startReceiver(t, (_hook, response) => {
    response.writeHead(isWell ? 204 : 503).end(isWell ? '' : 'busy \u001b[2J');
  });
  const webhook = await create(receiver.url);
  await happen();
  await waitUntil(async () => (await deliveries(webhook.id))[0]?.status === 'failed', 'it is given up');
  const [delivery] = await deliveries(webhook.id);
  assert.equal(receiver.received.length, 8);
  assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1);
  assert.equal(new Set(receiver.received.map(({ text }) => text)).size, 1);
  assert.deepEqual(
    delivery.attempts.map(({ status, error, response }: Record<string, unknown>) => [
      status,
      error,
      response,
    ]),
    Array.from({ length: 8 }, () => [503, 'it answered 503', 'busy \uFFFD[2J']),
  );
  assert.equal((await rest('GET', `/webhooks/${webhook.id}`)).body.failing_since, delivery.attempts[0].at);

  const path = `/webhooks/${webhook.id}/deliveries/${delivery.id}/redeliver`;
  assert.deepEqual((await rest('POST', path)).body.status, 'failed');
  isWell = true;
  const again = await rest('POST', path);
  assert.deepEqual([again.status, again.body.status, again.body.attempts.length], [200, 'succeeded', 10]);
  assert.equal(receiver.received.at(-1)?.headers['webhook-id'], delivery.message_id);
  assert.equal((await rest('GET', `/webhooks/${webhook.id}`)).body.failing_since, null);
  assert.deepEqual((await eventTypes(id)).slice(-2), ['webhook_redelivered', 'webhook_redelivered']);
  const missing = await rest('POST', path.replace(delivery.id, crypto.randomUUID()));
  assert.equal(missing.body.error.code, 'not_found');
});

test('the second attempt waits', async (t) => {
  const { create, happen, deliveries } = await startAcme(t, {
    settings: { retryMs: DEFAULT_WEBHOOK_SETTINGS.retryMs },
  });
  const { id } = await create('http://127.0.0.1:1/hook');
  await happen();
  await waitUntil(async () => (await deliveries(id))[0]?.attempts.length === 1, 'the first attempt');
  const [{ status, attempts, next_attempt_at: next }] = await deliveries(id);
  assert.equal(status, 'pending');
  assert.match(attempts[0].error, /ECONNREFUSED/);
  const pauseMs = Date.parse(next) - Date.parse(attempts[0].at) - attempts[0].latency_ms;
  assert.ok(pauseMs >= 4000 && pauseMs <= 60_000, String(pauseMs));
});

test('a receiver that asks for time is given it; what waits for it is counted, and bounded', async (t) => {
  const settings = { maxBacklog: 2, trimMs: 0 };
  const { create, happen, deliveries, server } = await startAcme(t, { settings });
  const receiver = await startReceiver(t, (_hook, response) => {
    response.writeHead(429, { 'retry-after': '3600' }).end();
  });
  const { id } = await create(receiver.url);
  await happen();
  await waitUntil(async () => (await deliveries(id))[0]?.attempts.length === 1, 'the first attempt');
  const [{ status, attempts, next_attempt_at: next }] = await deliveries(id);
  const pauseMs = Date.parse(next) - Date.parse(attempts[0].at);
  assert.ok(status === 'pending' && pauseMs >= 3_590_000 && pauseMs <= 3_700_000, String(pauseMs));
  const operator = { namespace: ALL_NAMESPACES, createdAt: new Date(), expiresAt: null };
  const headers = { authorization: `Bearer ${await signKey(SIGNING_KEY, operator)}` };
  const scrape = async () => await (await fetch(`${server.url}/metrics`, { headers })).text();
  assert.match(await scrape(), /_total\{outcome="failed"\} 1$[^]*^svc_webhook_backlog 1$/m);
  for (let more = 0; more < 2; more += 1) await happen();
  await waitUntil(async () => (await scrape()).includes('{outcome="dropped"} 1'), 'the oldest is dropped');
  assert.match(JSON.stringify((await deliveries(id)).at(-1)), /"dropped: more than 2 messages/);
});

test('a test is sent at once, regardless of the filter, and reports its outcome', async (t) => {
  const { create, rest, eventTypes, id } = await startAcme(t, { settings: { timeoutMs: 300 } });
  const target = await startReceiver(t);
  const receiver = await startReceiver(t, ({ path }, response) => {
    if (path === '/hook/moved') response.writeHead(307, { location: target.url }).end();
    else if (path === '/hook/huge') response.end('x'.repeat(5_000_000));
    // Begins to answer, and never comes to an end.
    else if (path === '/hook/slow') response.writeHead(200).write('a');
    else response.end('fine');
  });
  const outcome = async (path: string, more: object = {}) => {
    const webhook = await create(receiver.url + path, more);
    const { status, body } = await rest('POST', `/webhooks/${webhook.id}/test`);
    assert.deepEqual([status, body.event_id, body.event_type], [200, null, 'webhook_test']);
    assert.equal(body.attempts.length, 1);
    const [{ error, response }] = body.attempts;
    return { ...webhook, status: body.status, error, response };
  };
  const fine = await outcome('', { enabled: false });
  assert.deepEqual([fine.status, fine.error, fine.response], ['succeeded', null, 'fine']);
  const [hook] = receiver.received;
  assert.ok(hook);
  assert.equal(hook.headers['webhook-signature'], signatureOf(fine.secret, hook));
  assert.deepEqual([hook.body.type, hook.body.data], ['webhook_test', { webhook_id: fine.id }]);
  const moved = await outcome('/moved');
  assert.equal(moved.status, 'failed');
  assert.match(moved.error, /it answered 307, which leads elsewhere/);
  assert.equal(target.received.length, 0);
  const huge = await outcome('/huge');
  assert.deepEqual([huge.status, huge.response], ['succeeded', 'x'.repeat(1024)]);
  const slow = await outcome('/slow');
  assert.match(slow.error, /did not answer within 300 ms/);
  // A test says nothing about events.
  assert.equal((await rest('GET', `/webhooks/${slow.id}`)).body.failing_since, null);
  assert.equal((await eventTypes(id)).filter((type) => type === 'webhook_tested').length, 4);
});

test('a receiver that does not answer delays no other, not even of the same organization', async (t) => {
  const { create, happen, rest, deliveries } = await startAcme(t);
  const silent = await startReceiver(t, () => undefined);
  const well = await startReceiver(t);
  for (let index = 0; index < 3; index++) await create(silent.url);
  await create(well.url);
  for (let index = 0; index < 20; index++) await happen(`key-${index}`);
  await waitUntil(() => well.received.length === 20, 'all of them arrive');
  assert.equal(silent.received.length, 12, 'four at a time of each');
  const [stuck] = (await rest('GET', '/webhooks')).body;
  const sent = new Set(silent.received.map(({ headers }) => headers['webhook-id']));
  const onItsWay = (await deliveries(stuck.id)).find(({ message_id: id }: { message_id: string }) =>
    sent.has(id),
  );
  const again = await rest('POST', `/webhooks/${stuck.id}/deliveries/${onItsWay.id}/redeliver`);
  assert.deepEqual([again.status, again.body.error.code], [409, 'invalid_state_transition']);
});

test('after a rotation both secrets sign, until the overlap is over', async (t) => {
  const { create, rest, server } = await startAcme(t);
  const receiver = await startReceiver(t);
  const webhook = await create(receiver.url);
  const signatures = async () => {
    await rest('POST', `/webhooks/${webhook.id}/test`);
    const hook = receiver.received.at(-1);
    assert.ok(hook);
    return { sent: hook.headers['webhook-signature'], of: (secret: string) => signatureOf(secret, hook) };
  };
  const rotated = await rest('POST', `/webhooks/${webhook.id}/rotate`, {});
  const { secret, previous_secret_until: until } = rotated.body;
  assert.notEqual(secret, webhook.secret);
  assert.ok(Math.abs(Date.parse(until) - Date.now() - 86_400_000) < 60_000);
  const both = await signatures();
  assert.equal(both.sent, `${both.of(secret)} ${both.of(webhook.secret)}`);
  await server.database
    .updateTable('webhooks')
    .set({ previous_secret_until: new Date(Date.now() - 1).toISOString() })
    .execute();
  const one = await signatures();
  assert.equal(one.sent, one.of(secret));
  assert.equal((await rest('GET', `/webhooks/${webhook.id}`)).body.previous_secret_until, null);
  const { body } = await rest('POST', `/webhooks/${webhook.id}/rotate`, { overlap_secs: 0 });
  const last = await signatures();
  assert.equal(last.sent, last.of(body.secret));
});

test('secrets, and addresses beyond their host, are in no list, log or audit event, and not in the store', async (t) => {
  const { create, rest, happen, deliveries, server, key } = await startAcme(t);
  const receiver = await startReceiver(t);
  const url = `${receiver.url}/T0K3N?sig=T0K3N`;
  const { id, secret } = await create(url, { event_types: ['*'] });
  const rotated = (await rest('POST', `/webhooks/${id}/rotate`, {})).body.secret;
  await happen();
  await rest('POST', `/webhooks/${id}/test`);
  await rest('PATCH', `/webhooks/${id}`, { url: `${url}&more` });
  await waitUntil(
    async () => (await deliveries(id)).every((each: { status: string }) => each.status === 'succeeded'),
    'all is delivered',
  );
  const shown = JSON.stringify([
    (await rest('GET', '/webhooks')).body,
    (await rest('GET', `/webhooks/${id}`)).body,
    await deliveries(id),
  ]);
  const events = JSON.stringify((await server.rest('GET', '/events', { key })).body);
  const stored = JSON.stringify([
    await server.database.selectFrom('webhooks').selectAll().execute(),
    await server.database.selectFrom('webhook_deliveries').selectAll().execute(),
    await server.database.selectFrom('idempotency').selectAll().execute(),
  ]);
  const sent = JSON.stringify(receiver.received);
  for (const word of [secret, rotated]) {
    const bare = word.replace('whsec_', '');
    for (const text of [shown, events, stored, sent]) assert.ok(!text.includes(bare));
  }
  assert.ok(!events.includes('T0K3N'));
  assert.ok(!sent.replaceAll(/"path":"[^"]*"/g, '').includes('T0K3N'));
});

test('addresses inside, and those that would be more than an address, are refused with the field', async (t) => {
  const { rest, server, create, key } = await startAcme(t, { outbound: { mayReachInside: false } });
  const refused = [
    'http://example.com/',
    'https://127.0.0.1/',
    'https://[::1]:9/',
    'https://169.254.169.254/latest/meta-data',
    'https://0x7f.1/',
    server.url,
    'https://user:word@example.com/',
    'https://example.com/\r\nx-evil: 1',
    'https://example.com/ HTTP/1.1',
    'file:///etc/passwd',
    'https://',
  ];
  for (const url of refused) {
    const { status, body } = await rest('POST', '/webhooks', { url, event_types: ['*'] });
    assert.deepEqual([status, body.error?.details?.field], [400, 'url'], url);
  }
  const webhook = await create('https://example.com/hook');
  const patched = await rest('PATCH', `/webhooks/${webhook.id}`, { url: 'https://10.0.0.1/' });
  assert.deepEqual([patched.status, patched.body.error.details.field], [400, 'url']);
  // What a name leads to is seen only when it is asked for.
  const named = await create(`https://localhost:${new URL(server.url).port}/v1/webhooks`);
  const { body } = await server.rest('POST', `/webhooks/${named.id}/test`, { key });
  assert.match(body.attempts[0].error, /localhost leads to no public address/);
});

test('a delivery that fails on this server is not repeated before its lease ends', async (t) => {
  const { create, rest, server } = await startAcme(t);
  const receiver = await startReceiver(t);
  const { id } = await create(receiver.url);
  // As if the key that sealed it were lost.
  await server.database.updateTable('webhooks').set({ secret: '00000000.AAAA' }).execute();
  const { status, body } = await rest('POST', `/webhooks/${id}/test`);
  assert.deepEqual([status, body.error.code], [500, 'internal']);
  const [left] = await server.database.selectFrom('webhook_deliveries').selectAll().execute();
  assert.equal(left?.status, 'pending');
  assert.ok(Date.parse(left.claimed_until ?? '') > Date.now(), String(left.claimed_until));
  assert.equal(receiver.received.length, 0);
});

test('a create that is repeated under its key makes one webhook, and shows its secret no more', async (t) => {
  const { server, key, rest } = await startAcme(t);
  const body = { url: 'http://127.0.0.1:1/', event_types: ['sandbox.*'] };
  const headers = { 'idempotency-key': 'once' };
  const replies = await Promise.all(
    Array.from({ length: 4 }, () => server.rest('POST', '/webhooks', { key, body, headers })),
  );
  assert.deepEqual(new Set(replies.map((reply) => reply.status)), new Set([200]));
  assert.equal(new Set(replies.map((reply) => reply.body.id)).size, 1);
  assert.equal(replies.filter((reply) => reply.body.secret !== null).length, 1);
  assert.equal((await rest('GET', '/webhooks')).body.length, 1);
});

test('a webhook that says it is gone, or fails for days, is disabled with a reason, and goes on when enabled', async (t) => {
  const { create, rest, happen, deliveries, eventTypes, id, server } = await startAcme(t);
  let status = 410;
  const receiver = await startReceiver(t, (_hook, response) => response.writeHead(status).end());
  const webhook = await create(receiver.url);
  const view = async () => (await rest('GET', `/webhooks/${webhook.id}`)).body;
  const isDisabled = async () => (await view()).enabled === false;
  await happen();
  await waitUntil(isDisabled, 'it is disabled');
  assert.match((await view()).disabled_reason, /answered 410/);
  assert.equal((await eventTypes(id)).at(-1), 'webhook_disabled');
  await happen();
  assert.equal((await deliveries(webhook.id)).length, 1, 'nothing is made for it meanwhile');

  status = 500;
  const enabled = await rest('PATCH', `/webhooks/${webhook.id}`, { enabled: true });
  assert.deepEqual([enabled.body.enabled, enabled.body.disabled_reason], [true, null]);
  await waitUntil(async () => (await deliveries(webhook.id))[0].status === 'failed', 'what waited goes on');
  assert.equal(await isDisabled(), false, 'it has not failed for long');
  const sixDaysAgo = new Date(Date.now() - 6 * 86_400_000).toISOString();
  await server.database.updateTable('webhooks').set({ failing_since: sixDaysAgo }).execute();
  await happen();
  await happen();
  await waitUntil(isDisabled, 'it is disabled');
  assert.match(
    (await view()).disabled_reason,
    new RegExp(`failed since ${sixDaysAgo}; the latest: it answered 500`),
  );
  assert.equal((await eventTypes(id)).filter((type) => type === 'webhook_disabled').length, 2);
});

test('an organization has its webhooks for itself, and a bounded number of them; members have none', async (t) => {
  const { create, rest, apiKey, admin, member } = await startAcme(t);
  const { id, secret: _secret, ...webhook } = await create('http://127.0.0.1:1/', { enabled: false });
  assert.deepEqual((await rest('GET', '/orgs/acme/webhooks', undefined, admin.key)).body, [
    { id, ...webhook },
  ]);
  assert.equal((await rest('GET', '/orgs/acme/webhooks', undefined, member.key)).status, 403);
  const other = await apiKey('other');
  assert.deepEqual((await rest('GET', '/webhooks', undefined, other)).body, []);
  const delivery = crypto.randomUUID();
  for (const [method, path, body] of [
    ['GET', ''],
    ['PATCH', '', { enabled: true }],
    ['DELETE', ''],
    ['POST', '/rotate', {}],
    ['POST', '/test'],
    ['GET', '/deliveries'],
    ['POST', `/deliveries/${delivery}/redeliver`],
  ] as const) {
    const reply = await rest(method, `/webhooks/${id}${path}`, body, other);
    assert.deepEqual([reply.status, reply.body.error.code], [404, 'not_found'], `${method} ${path}`);
  }
  const made = [];
  for (let index = 1; index < 16; index++) made.push(await create('http://127.0.0.1:1/', { enabled: false }));
  const more = await rest('POST', '/webhooks', { url: 'http://127.0.0.1:1/', event_types: ['*'] });
  assert.deepEqual([more.status, more.body.error.code], [429, 'quota_exceeded']);
  assert.equal((await rest('DELETE', `/webhooks/${id}`)).status, 200);
  assert.equal((await rest('GET', `/webhooks/${id}`)).status, 404);
  assert.equal((await rest('GET', '/webhooks')).body.length, 15);
  const unknown = await rest('POST', '/webhooks', { url: 'http://127.0.0.1:1/', event_types: ['sandbox_*'] });
  assert.deepEqual([unknown.status, unknown.body.error.details.field], [400, 'event_types[0]']);
});
