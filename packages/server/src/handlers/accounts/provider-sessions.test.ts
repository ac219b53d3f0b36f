import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Browser } from '../../testing/browser.ts';
import { CLIENT, TestProvider } from '../../testing/identity-provider.ts';
import { startWithPeople } from '../../testing/people.ts';

const REDIRECT = 'https://svc.example/sign-in/provider?from=acme';
const INSIDE = { restSettings: { outbound: { mayReachInside: true } } };

async function startWithProvider(t: TestContext) {
  const provider = await TestProvider.start();
  t.after(() => provider.close());
  const people = await startWithPeople(t, INSIDE);
  const ann = await people.person('ann');
  const id = await people.organization('acme', { owner: ann });
  const set = (body: object, key = ann.key) => people.server.rest('PUT', '/orgs/acme/oidc', { key, body });
  const put = await set({ issuer_url: provider.issuer, ...CLIENT, allowed_domains: ['acme.example'] });
  assert.equal(put.status, 200, JSON.stringify(put.body));
  const begin = async (browser = new Browser(people)) => {
    const body = { organization: 'acme', redirect_uri: REDIRECT };
    const begun = await browser.call('POST', '/session/provider', body);
    assert.equal(begun.status, 200, JSON.stringify(begun.body));
    const { authorization_url: url, ticket } = begun.body;
    const end = (more: object = {}) =>
      browser.call('POST', '/session/provider/answer', { ...provider.signIn(url), ticket, ...more });
    return { browser, url, ticket, end };
  };
  const signIn = async (claims: TestProvider['claims']) => {
    provider.claims = { email_verified: true, ...claims };
    const { browser, end } = await begin();
    return { browser, answer: await end() };
  };
  return { ...people, provider, ann, id, set, put, begin, signIn };
}

test('a member signs in at the provider of the organization, and works there', async (t) => {
  const { ann, id, provider, put, signIn, begin, eventTypes } = await startWithProvider(t);
  assert.deepEqual([put.body.has_client_secret, JSON.stringify(put.body).includes('s3cret')], [true, false]);
  const { url } = await begin();
  const query = Object.fromEntries(new URL(url).searchParams);
  assert.equal(query['tenant'], '1');
  assert.equal(query['client_id'], CLIENT.client_id);
  assert.equal(query['redirect_uri'], REDIRECT);
  const { browser, answer } = await signIn({ sub: 'a1', email: ann.email, amr: ['pwd', 'mfa'] });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.deepEqual(
    [answer.body.user.id, answer.body.organization_id, answer.body.has_second_factor],
    [ann.id, id, true],
  );
  const [user, word] = Buffer.from(provider.redeemed[0]?.slice('Basic '.length) ?? '', 'base64')
    .toString()
    .split(':');
  assert.deepEqual([user, word], ['svc+at+acme', 's3cret%2F%2B%C3%BC']);
  assert.equal((await browser.call('GET', '/orgs/acme')).body.role, 'owner');
  assert.equal((await browser.call('POST', '/orgs/acme/api-keys', { name: 'ci' })).status, 200);
  assert.ok((await eventTypes(id)).includes('session_created'));
  // Their address may change at the provider: they are who they were.
  const again = await signIn({ sub: 'a1', email: 'ann.miller@acme.example' });
  assert.equal(again.answer.body.user.id, ann.id);
});

test('account takeover: what a provider says holds in its own organization alone', async (t) => {
  const { ann, signIn, person, organization } = await startWithProvider(t);
  const bob = await person('bob');
  await organization('other', { owner: ann, member: bob });
  const { browser } = await signIn({ sub: 'x', email: ann.email });
  const refused = await browser.call('GET', '/orgs/other');
  assert.deepEqual([refused.status, refused.body.error.details.needed], [403, 'session_without_limit']);
  for (const [method, path, body] of [
    ['POST', '/users/me/pats', { name: 'x' }],
    ['PUT', '/users/me/password', { password: 'a new password' }],
    ['POST', '/users/me/second-factor', {}],
    ['PATCH', '/users/me', { display_name: 'x' }],
    ['DELETE', '/users/me', { confirm: ann.email }],
    ['DELETE', '/users/me/sessions', undefined],
    ['GET', '/users/me/ssh-keys', undefined],
    ['POST', '/orgs', { name: 'third' }],
  ] as const)
    assert.equal((await browser.call(method, path, body)).status, 403, `${method} ${path}`);
  const listed = await browser.call('GET', '/orgs');
  assert.deepEqual(
    listed.body.map(({ slug }: { slug: string }) => slug),
    ['acme'],
  );
  assert.equal((await browser.call('GET', '/users/me')).body.id, ann.id);
  assert.equal((await browser.call('DELETE', '/session')).status, 200);
  assert.equal((await browser.call('GET', '/orgs/acme')).status, 401);
});

test('users with an address in the domain of the organization join, others need an invite, removed members stay out', async (t) => {
  const { ann, server, signIn } = await startWithProvider(t);
  const eve = await signIn({ sub: 'e', email: 'eve@else.example' });
  assert.equal(eve.answer.status, 403);
  assert.equal((await signIn({ sub: 'n' })).answer.status, 403);
  const typed = await signIn({ sub: 't', email: 'ceo@acme.example', email_verified: false });
  assert.equal(typed.answer.status, 403);
  const bob = await signIn({ sub: 'b', email: 'Bob@acme.example', name: 'Bob\nB.' });
  assert.deepEqual([bob.answer.status, bob.answer.body.user.display_name], [200, 'Bob B.']);
  assert.equal((await bob.browser.call('GET', '/orgs/acme')).body.role, 'member');
  const invited = { email: 'eve@else.example', role: 'admin' };
  assert.equal(
    (await server.rest('POST', '/orgs/acme/invites', { key: ann.key, body: invited })).status,
    200,
  );
  const second = await signIn({ sub: 'e', email: 'eve@else.example' });
  assert.equal((await second.browser.call('GET', '/orgs/acme')).body.role, 'admin');
  const member = `/orgs/acme/members/${bob.answer.body.user.id}`;
  assert.equal((await server.rest('DELETE', member, { key: ann.key })).status, 200);
  assert.equal((await bob.browser.call('GET', '/orgs/acme')).status, 403);
  assert.equal((await signIn({ sub: 'b', email: 'bob@acme.example' })).answer.status, 403);
});

test('an invalid token is refused', async (t) => {
  const { ann, provider, signIn, server } = await startWithProvider(t);
  const sessions = () => server.database.selectFrom('sessions').selectAll().execute();
  const faults = [
    'other-key',
    'shared-secret',
    'unsigned',
    'expired',
    'other-audience',
    'other-nonce',
    'other-issuer',
  ] as const;
  for (const fault of faults) {
    provider.fault = fault;
    // A few of them make everybody at this address wait; here each is to be judged.
    await server.database.deleteFrom('sign_in_failures').execute();
    const { answer, browser } = await signIn({ sub: 'a1', email: ann.email });
    assert.equal(answer.status, 503, `${fault} ${JSON.stringify(answer.body)}`);
    assert.equal(browser.cookie, '', fault);
  }
  const more = async () => (await signIn({ sub: 'a1', email: ann.email })).answer.status;
  const statuses = [await more(), await more(), await more(), await more(), await more()];
  assert.deepEqual(statuses, [503, 503, 503, 503, 429]);
  assert.deepEqual(await sessions(), []);
});

test('login CSRF: a browser cannot finish the sign-in of another one, with codes and states of its own', async (t) => {
  const { ann, begin, provider } = await startWithProvider(t);
  provider.claims = { sub: 'evil', email: ann.email, email_verified: true };
  const attacker = await begin();
  const victim = await begin();
  const planted = provider.signIn(attacker.url);
  assert.equal((await victim.end(planted)).status, 401);
  assert.equal((await victim.end({ state: 'made up' })).status, 401);
  assert.equal((await victim.end({ ticket: 'guessed' })).status, 401);
  // A code of one attempt is no use with the state of another.
  assert.equal((await victim.end({ code: planted.code })).status, 503);
  assert.equal((await victim.end()).status, 200);
});

test('code replay: a code signs in only once', async (t) => {
  const { ann, begin, provider } = await startWithProvider(t);
  provider.claims = { sub: 'a1', email: ann.email, email_verified: true };
  const { browser, url, ticket } = await begin();
  const body = { ...provider.signIn(url), ticket };
  assert.equal((await browser.call('POST', '/session/provider/answer', body)).status, 200);
  assert.equal((await browser.call('POST', '/session/provider/answer', body)).status, 503);
});

test('a provider is asked before it is kept, and only owners choose it', async (t) => {
  const { provider, set, server, ann, person, organization } = await startWithProvider(t);
  const wrong = await set({ issuer_url: `${provider.issuer}/other`, ...CLIENT });
  assert.deepEqual([wrong.status, wrong.body.error.details.field], [400, 'issuer_url']);
  assert.match(wrong.body.error.message, /answered 404/);
  const slash = await set({ issuer_url: `${provider.issuer}/`, ...CLIENT });
  assert.match(slash.body.error.message, /calls itself/);
  const kept = await set({ issuer_url: provider.issuer, client_id: 'renamed' });
  assert.deepEqual([kept.status, kept.body.has_client_secret], [200, true]);
  const none = await set({ issuer_url: provider.issuer, client_id: 'public', client_secret: null });
  assert.equal(none.body.has_client_secret, false);
  const bob = await person('bob');
  await organization('bobs', { owner: ann, admin: bob });
  const asAdmin = await server.rest('GET', '/orgs/bobs/oidc', { key: bob.key });
  assert.equal(asAdmin.status, 403);
  assert.equal((await server.rest('GET', '/orgs/bobs/oidc', { key: ann.key })).status, 404);
});

test('a provider inside of the network of the server is refused, unless the operator lets it', async (t) => {
  const provider = await TestProvider.start();
  t.after(() => provider.close());
  const { server, person, organization } = await startWithPeople(t);
  const ann = await person('ann');
  await organization('acme', { owner: ann });
  const put = (issuer: string) =>
    server.rest('PUT', '/orgs/acme/oidc', { key: ann.key, body: { issuer_url: issuer, ...CLIENT } });
  assert.match((await put(provider.issuer)).body.error.message, /must begin with https/);
  const inside = await put(provider.issuer.replace('http:', 'https:'));
  assert.match(inside.body.error.message, /no public address/);
  const named = await put('https://localhost');
  assert.match(named.body.error.message, /no public address/);
});

test('without its provider an organization has no sessions that began there', async (t) => {
  const { ann, server, signIn } = await startWithProvider(t);
  const { browser } = await signIn({ sub: 'a1', email: ann.email });
  const path = '/orgs/acme/oidc';
  assert.equal((await server.rest('DELETE', path, { key: ann.key })).status, 200);
  assert.equal((await browser.call('GET', '/orgs/acme')).status, 401);
  const body = { organization: 'acme', redirect_uri: REDIRECT };
  assert.equal((await browser.call('POST', '/session/provider', body)).status, 404);
});
