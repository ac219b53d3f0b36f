import assert from 'node:assert/strict';
import { CLIENT, TestProvider } from '../../../packages/server/src/testing/identity-provider.ts';
import { Outcomes } from './outcomes.ts';
import type { Call, Reply } from './world.ts';

const REDIRECT = 'https://svc.example/sign-in/provider';

/** Members who sign in at the identity provider of their organization. */
export const providers = new Outcomes();

let provider: TestProvider;

providers.phase('an identity provider', {
  enter: async () => {
    provider = await TestProvider.start();
  },
  leave: async () => {
    provider.close();
    await Promise.resolve();
  },
});

providers.add('identityProvider.get', 'not_found', (call) => call('identityProvider.get'));
providers.add('identityProvider.remove', 'not_found', (call) => call('identityProvider.remove'));
providers.add('identityProvider.put', 'ok', (call) => put(call));
providers.add('identityProvider.put', 'forbidden', async (call, world) => {
  const { token: as } = await world.person('admin');
  return await call('identityProvider.put', { body: { issuer_url: provider.issuer, ...CLIENT }, as });
});
providers.add('identityProvider.get', 'ok', async (call) => {
  await put(call);
  return await call('identityProvider.get');
});
providers.add('identityProvider.get', 'forbidden', async (call, world) => {
  const { token: as } = await world.person('admin');
  return await call('identityProvider.get', { as });
});
providers.add('identityProvider.remove', 'forbidden', async (call, world) => {
  const { token: as } = await world.person('admin');
  return await call('identityProvider.remove', { as });
});
providers.add('session.beginAtProvider', 'ok', async (call) => {
  await put(call);
  return await begin(call);
});
providers.add('session.beginAtProvider', 'not_found', (call) => begin(call, 'no-such-organization'));
providers.add('session.createByProvider', 'ok', async (call) => {
  await put(call);
  return await end(call, { sub: 'one', email: 'one@acme.example', email_verified: true });
});
providers.add('session.createByProvider', 'forbidden', async (call) => {
  await put(call);
  return await end(call, { sub: 'two', email: 'two@else.example', email_verified: true });
});
providers.add('session.createByProvider', 'sign_in_failed', async (call) => {
  await put(call);
  return await end(call, {}, { ticket: 'of another browser' });
});
providers.add('session.createByProvider', 'unavailable', async (call) => {
  await put(call);
  return await end(call, {}, { code: 'made-up' });
});
providers.add('session.createByProvider', 'not_found', async (call) => {
  await put(call);
  const { body } = await begin(call);
  assert.equal((await call('identityProvider.remove')).status, 200);
  return await answer(call, body);
});
providers.add('identityProvider.remove', 'ok', async (call) => {
  await put(call);
  return await call('identityProvider.remove');
});

async function put(call: Call): Promise<Reply> {
  const body = { issuer_url: provider.issuer, ...CLIENT, allowed_domains: ['acme.example'] };
  const reply = await call('identityProvider.put', { body });
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return reply;
}

async function begin(call: Call, organization = 'acme'): Promise<Reply> {
  return await call('session.beginAtProvider', { body: { organization, redirect_uri: REDIRECT } });
}

async function end(call: Call, claims: TestProvider['claims'], more: object = {}): Promise<Reply> {
  provider.claims = claims;
  return await answer(call, (await begin(call)).body, more);
}

async function answer(call: Call, begun: Reply['body'], more: object = {}): Promise<Reply> {
  const { authorization_url: url, ticket } = begun;
  return await call('session.createByProvider', { body: { ...provider.signIn(url), ticket, ...more } });
}
