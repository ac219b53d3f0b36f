import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { codeOfStep } from '../../access/one-time-code.ts';
import { createOwnerLink } from '../../store/owner-links.ts';
import { createSignInLink } from '../../store/sessions.ts';
import { Browser } from '../../testing/browser.ts';
import { startWithPeople } from '../../testing/people.ts';

const PASSWORD = 'correct horse battery';
const STEP_MS = 30_000;
const SOON = () => new Date(Date.now() + 60_000).toISOString();

async function startWithAnn(t: TestContext, options: Parameters<typeof startWithPeople>[1] = {}) {
  const people = await startWithPeople(t, options);
  const ann = await people.person('ann');
  const id = await people.organization('acme', { owner: ann });
  const setPassword = (key: string, body: object) =>
    people.server.rest('PUT', '/users/me/password', { key, body });
  assert.equal((await setPassword(ann.key, { password: PASSWORD })).status, 200);
  const signIn = async (more: object = {}) => {
    const browser = new Browser(people);
    const answer = await browser.call('POST', '/session', { email: ann.email, password: PASSWORD, ...more });
    return { browser, answer };
  };
  /** Turned on; gives codes that were not used yet. */
  const withSecondFactor = async () => {
    const begun = await people.server.rest('POST', '/users/me/second-factor', { key: ann.key, body: {} });
    assert.match(begun.body.uri, /^otpauth:\/\/totp\/[^?]*ann%40example\.com\?secret=[A-Z2-7]{32}&issuer=/);
    const secret = new URL(begun.body.uri).searchParams.get('secret') ?? '';
    let step = 0;
    // That of now, or the next one, which is taken already: either is still taken when a step ends meanwhile.
    const code = () => {
      step = Math.max(step + 1, Math.floor(Date.now() / STEP_MS));
      return codeOfStep(secret, step);
    };
    const body = { code: code() };
    const on = await people.server.rest('PUT', '/users/me/second-factor', { key: ann.key, body });
    assert.equal(on.status, 200);
    return { code, recoveryCodes: on.body.recovery_codes as string[] };
  };
  return { ...people, ann, id, setPassword, signIn, withSecondFactor };
}

test('a user signs in, works in their organization, and signs out; the answers hold no secret', async (t) => {
  const { signIn, ann, id, eventTypes } = await startWithAnn(t);
  const { browser, answer } = await signIn({ email: 'ANN@example.com' });
  assert.equal(answer.status, 200);
  assert.equal(answer.body.user.email, ann.email);
  assert.match(answer.set, /^__Host-svc_session=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; .*Secure$/);
  assert.ok(!JSON.stringify(answer.body).includes(browser.cookie.split('=')[1] ?? ''));
  assert.equal((await browser.call('GET', '/orgs/acme')).body.role, 'owner');
  assert.equal((await browser.call('POST', '/orgs/acme/api-keys', { name: 'ci' })).status, 200);
  const listed = await browser.call('GET', '/users/me/sessions');
  assert.deepEqual(
    listed.body.map((session: { is_current: boolean }) => session.is_current),
    [true],
  );
  assert.equal((await browser.call('DELETE', '/session')).status, 200);
  assert.equal(browser.cookie, '__Host-svc_session=');
  assert.deepEqual(await eventTypes(id), [
    'password_changed',
    'session_created',
    'api_key_created',
    'session_ended',
  ]);
});

test('token replay: a session that was signed out is worth nothing, as cookie and as bearer', async (t) => {
  const { signIn, server } = await startWithAnn(t);
  const { browser } = await signIn();
  const [stolen, token] = [browser.cookie, browser.cookie.split('=')[1] ?? ''];
  assert.equal((await server.rest('GET', '/orgs/acme', { key: token })).status, 200);
  await browser.call('DELETE', '/session');
  browser.cookie = stolen;
  assert.equal((await browser.call('GET', '/orgs/acme')).status, 401);
  assert.equal((await server.rest('GET', '/orgs/acme', { key: token })).status, 401);
});

test('signing out everywhere and choosing another password end other sessions', async (t) => {
  const { signIn, ann, setPassword } = await startWithAnn(t);
  const [one, two, three] = [await signIn(), await signIn(), await signIn()];
  assert.equal((await one.browser.call('DELETE', '/users/me/sessions')).status, 200);
  assert.equal((await two.browser.call('GET', '/session')).status, 401);
  assert.equal((await three.browser.call('GET', '/session')).status, 401);
  const [here, there] = [await signIn(), await signIn()];
  const missing = await setPassword(ann.key, { password: 'another one 123' });
  assert.equal(missing.body.error.details.field, 'current_password');
  const wrong = await setPassword(ann.key, { password: 'another one 123', current_password: 'nope' });
  assert.equal(wrong.status, 403);
  const body = { password: 'another one 123', current_password: PASSWORD };
  assert.equal((await here.browser.call('PUT', '/users/me/password', body)).status, 200);
  assert.equal((await here.browser.call('GET', '/session')).status, 200);
  assert.equal((await there.browser.call('GET', '/session')).status, 401);
  assert.equal((await signIn()).answer.status, 401);
});

test('session fixation: sign-in replaces the session that the browser sent', async (t) => {
  const people = await startWithAnn(t);
  const eve = await people.person('eve');
  const attacker = new Browser(people);
  attacker.cookie = `__Host-svc_session=${await people.session(eve.id)}`;
  const victim = new Browser(people);
  victim.cookie = attacker.cookie;
  const signedIn = await victim.call('POST', '/session', { email: people.ann.email, password: PASSWORD });
  assert.equal(signedIn.status, 200);
  assert.notEqual(victim.cookie, attacker.cookie);
  assert.equal((await victim.call('GET', '/session')).body.user.email, people.ann.email);
  assert.equal((await attacker.call('GET', '/session')).body.user.email, eve.email);
});

test('CSRF: with the cookie alone, another page reads nothing and changes nothing', async (t) => {
  const { signIn, server } = await startWithAnn(t);
  const { browser } = await signIn();
  const evil = { origin: 'https://evil.example' };
  assert.equal((await browser.call('GET', '/session', undefined, evil)).status, 403);
  assert.equal((await browser.call('POST', '/orgs', { name: 'x' }, evil)).status, 403);
  // A form sends no header of its own, and old browsers no origin.
  const form = await fetch(`${server.url}/v1/orgs`, {
    method: 'POST',
    headers: { cookie: browser.cookie, 'content-type': 'text/plain' },
    body: '{"name":"x"}',
  });
  assert.equal(form.status, 403);
  const { body } = await browser.call('GET', '/orgs');
  assert.deepEqual(
    body.map(({ slug }: { slug: string }) => slug),
    ['acme'],
  );
});

test('user enumeration: no answer tells whether there is such a user', async (t) => {
  const { signIn } = await startWithAnn(t);
  const wrong = await signIn({ password: 'wrong password' });
  const unknown = await signIn({ email: 'unknown@example.com' });
  const strip = ({ answer: { status, body } }: typeof wrong) => ({ status, error: body.error });
  assert.deepEqual(strip(wrong), strip(unknown));
  const { status, body } = wrong.answer;
  assert.deepEqual([status, body.error.code], [401, 'sign_in_failed']);
  assert.match(body.error.message, /password is wrong/);
});

test('brute force: after a few failures sign-in is refused for a while, many at once included', async (t) => {
  const { signIn } = await startWithAnn(t);
  const tries = await Promise.all(Array.from({ length: 12 }, () => signIn({ password: 'wrong password' })));
  const statuses = tries.map(({ answer }) => answer.status);
  assert.equal(statuses.filter((status) => status === 401).length, 5, statuses.join(' '));
  const locked = await signIn();
  assert.equal(locked.answer.status, 429);
  assert.ok(Number(locked.answer.headers.get('retry-after')) > 0);
});

test('a second factor is asked for after the password, and each code works once', async (t) => {
  const { signIn, withSecondFactor, server, ann } = await startWithAnn(t);
  const { code, recoveryCodes } = await withSecondFactor();
  const without = await signIn();
  assert.deepEqual([without.answer.status, without.answer.body.error.details], [401, { needed: 'code' }]);
  const current = code();
  const first = await signIn({ code: current });
  assert.deepEqual([first.answer.status, first.answer.body.has_second_factor], [200, true]);
  const { answer: again } = await signIn({ code: current });
  assert.deepEqual([again.status, again.body.error.code], [401, 'sign_in_failed']);
  assert.deepEqual(again.body.error.details, { needed: 'code', field: 'code' });
  assert.equal((await signIn({ code: recoveryCodes[0] })).answer.status, 200);
  assert.equal((await signIn({ code: recoveryCodes[0] })).answer.status, 401);
  const left = await server.rest('GET', '/users/me/second-factor', { key: ann.key });
  assert.deepEqual(left.body, { is_on: true, recovery_codes_left: 9 });
  const stored = JSON.stringify(await server.database.selectFrom('second_factors').selectAll().execute());
  assert.ok(!recoveryCodes.some((each) => stored.includes(each)));
});

test('brute force: codes of a second factor are as few as passwords, wherever they are asked for', async (t) => {
  const people = await startWithAnn(t);
  const { server, ann, withSecondFactor } = people;
  const { recoveryCodes } = await withSecondFactor();
  const removal = (code: string) =>
    server.rest('DELETE', '/users/me/second-factor', { key: ann.key, body: { code } });
  const token = await createSignInLink(server.database, ann.id, SOON());
  const byLink = (code: string) => new Browser(people).call('POST', '/session/link', { token, code });
  const tries = await Promise.all(
    Array.from({ length: 8 }, () => [removal('000000'), byLink('000000')] as const).flat(),
  );
  const statuses = tries.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status !== 429).length, 5, statuses.join(' '));
  for (const locked of [await removal(recoveryCodes[0] ?? ''), await byLink(recoveryCodes[0] ?? '')]) {
    assert.equal(locked.status, 429);
    assert.ok(Number(locked.headers.get('retry-after')) > 0);
  }
});

test('a blocked address does not lock the owner of an account out', async (t) => {
  const { signIn, server } = await startWithAnn(t);
  const spent = { subject: 'from:127.0.0.1', count: 50, last_at: new Date().toISOString() };
  await server.database.insertInto('sign_in_failures').values(spent).execute();
  for (let count = 0; count < 6; count += 1) assert.equal((await signIn()).answer.status, 429);
  await server.database.deleteFrom('sign_in_failures').where('subject', '=', spent.subject).execute();
  assert.equal((await signIn()).answer.status, 200);
});

test('an organization that requires a second factor refuses users without one', async (t) => {
  const { signIn, withSecondFactor, server, ann, person, organization } = await startWithAnn(t);
  const require = (key: string) => server.rest('PATCH', '/orgs/acme', { key, body: { mfa_required: true } });
  assert.equal((await require(ann.key)).body.error.details.field, 'mfa_required');
  const { browser: before } = await signIn();
  const { code } = await withSecondFactor();
  assert.equal((await require(ann.key)).body.mfa_required, true);
  const refused = await before.call('GET', '/orgs/acme');
  assert.deepEqual([refused.status, refused.body.error.details.needed], [403, 'second_factor']);
  const { browser } = await signIn({ code: code() });
  assert.equal((await browser.call('GET', '/orgs/acme')).status, 200);
  assert.equal((await server.rest('GET', '/orgs/acme', { key: ann.key })).status, 200);
  const bob = await person('bob');
  await organization('other', { owner: bob });
  assert.equal((await server.rest('GET', '/orgs/other', { key: bob.key })).status, 200);
});

test('a link signs in once, and asks for the second factor like everything else', async (t) => {
  const people = await startWithAnn(t);
  const { server, ann, withSecondFactor } = people;
  const link = () => createSignInLink(server.database, ann.id, SOON());
  const former = await link();
  const token = await link();
  const browser = new Browser(people);
  assert.equal((await browser.call('POST', '/session/link', { token: former })).status, 401);
  assert.equal((await browser.call('POST', '/session/link', { token })).status, 200);
  assert.equal((await browser.call('POST', '/session/link', { token })).status, 401);
  const { code } = await withSecondFactor();
  const other = await link();
  assert.equal((await browser.call('POST', '/session/link', { token: other })).status, 401);
  assert.equal((await browser.call('POST', '/session/link', { token: other, code: code() })).status, 200);
});

test('an invited user signs up with the address of the invite, once, and joins; other users cannot', async (t) => {
  const people = await startWithAnn(t);
  const { server, ann } = people;
  const body = { email: 'bob@example.com', role: 'member' };
  const invite = await server.rest('POST', '/orgs/acme/invites', { key: ann.key, body });
  const account = { email: 'bob@example.com', password: PASSWORD, display_name: 'Bob' };
  const browser = new Browser(people);
  const signUp = (more: object) => browser.call('POST', '/sign-up', { ...account, ...more });
  assert.equal((await signUp({})).status, 403);
  assert.equal((await signUp({ token: 'made up' })).status, 403);
  assert.equal((await signUp({ email: 'eve@example.com', token: invite.body.token })).status, 403);
  const made = await signUp({ token: invite.body.token });
  assert.deepEqual([made.status, made.body.user.display_name], [200, 'Bob']);
  assert.equal((await signUp({ token: invite.body.token })).body.error.code, 'name_already_exists');
  assert.equal((await browser.call('POST', `/invites/${invite.body.token}/accept`, {})).body.role, 'member');
  // Invite reuse.
  assert.equal((await browser.call('POST', `/invites/${invite.body.token}/accept`, {})).status, 400);
  // Role escalation.
  const id = made.body.user.id;
  assert.equal((await browser.call('PATCH', `/orgs/acme/members/${id}`, { role: 'owner' })).status, 403);
  assert.equal((await browser.call('GET', '/orgs/acme/invites')).status, 403);
});

test('the operator decides who may sign up', async (t) => {
  const joins = async (signUp: 'open' | 'closed') => {
    const people = await startWithAnn(t, { restSettings: { signUp } });
    const body = { email: 'bob@example.com', role: 'member' };
    const invite = await people.server.rest('POST', '/orgs/acme/invites', { key: people.ann.key, body });
    const browser = new Browser(people);
    const account = { email: 'bob@example.com', password: PASSWORD };
    const invited = await browser.call('POST', '/sign-up', { ...account, token: invite.body.token });
    const outsider = await browser.call('POST', '/sign-up', { ...account, email: 'eve@example.com' });
    return [invited.status, outsider.status];
  };
  assert.deepEqual(await joins('open'), [200, 200]);
  assert.deepEqual(await joins('closed'), [403, 403]);
});

test('development mode has nothing to sign in to', async (t) => {
  const { startTestServer } = await import('../../testing/test-server.ts');
  const server = await startTestServer(t);
  const body = { email: 'a@example.com', password: PASSWORD };
  const answer = await server.rest('POST', '/session', { body });
  assert.deepEqual([answer.status, answer.body.error.code], [403, 'forbidden']);
});

test('the first person makes their account with the link of the server, owns what keys act for, and is the only one', async (t) => {
  const people = await startWithPeople(t, { restSettings: { signUp: 'closed' } });
  const { database } = people.server;
  const signUp = (token: string, email = 'ann@example.com') =>
    new Browser(people).call('POST', '/sign-up', { email, password: PASSWORD, token });
  assert.equal((await signUp('made up')).status, 403);
  const expired = await createOwnerLink(database, new Date(Date.now() - 1000).toISOString());
  assert.equal((await signUp(expired)).status, 403);
  const link = await createOwnerLink(database, SOON());
  // Who gets no further than a password that is too short has not used it up.
  assert.equal(
    (await new Browser(people).call('POST', '/sign-up', { email: 'a@b.example', password: 'x', token: link }))
      .status,
    400,
  );
  const both = await Promise.all([signUp(link), signUp(link, 'eve@example.com')]);
  assert.equal(both.filter(({ status }) => status === 200).length, 1);
  assert.equal(both.filter(({ status }) => status === 403).length, 1);
  const browser = new Browser(people);
  const email = both.find(({ status }) => status === 200)?.body.user.email;
  assert.equal((await browser.call('POST', '/session', { email, password: PASSWORD })).status, 200);
  assert.equal((await browser.call('GET', '/orgs/default')).body.role, 'owner');
  assert.equal((await signUp(link, 'late@example.com')).status, 403);
  // A later link is refused too.
  const late = await createOwnerLink(database, SOON());
  assert.equal((await signUp(late, 'late@example.com')).status, 403);
});

test('deleting an account needs its password or its second factor, not just an open session', async (t) => {
  const people = await startWithAnn(t);
  const { ann, signIn, withSecondFactor } = people;
  const bob = await people.person('bob');
  await people.organization('other', { owner: bob, member: ann });
  await people.server.rest('DELETE', '/orgs/acme', { key: ann.key, body: { confirm: 'acme' } });
  const { browser } = await signIn();
  const remove = (proof: object) => browser.call('DELETE', '/users/me', { confirm: ann.email, ...proof });
  assert.equal((await remove({})).body.error.details.field, 'current_password');
  const guessed = await remove({ current_password: 'guessed' });
  assert.deepEqual([guessed.status, guessed.body.error.details.field], [403, 'current_password']);
  const { code } = await withSecondFactor();
  assert.equal((await remove({})).status, 400, 'one of the two is needed');
  assert.equal((await remove({ code: '000000' })).body.error.details.field, 'code');
  assert.equal((await remove({ code: code() })).status, 200);
  assert.equal((await browser.call('GET', '/session')).status, 401);
});
