import assert from 'node:assert/strict';
import { createLocalSignInLink } from '@svc/server/local';
import { codeOfStep } from '../../../packages/server/src/access/one-time-code.ts';
import { Outcomes } from './outcomes.ts';
import type { Call, Reply, World } from './world.ts';

const PASSWORD = 'correct horse battery';
const STEP_MS = 30_000;

/** How people sign in. */
export const accounts = new Outcomes();

accounts.phase('accounts and sessions');

accounts.add('session.create', 'ok', async (call, world) => {
  const { email } = await withPassword(call, world);
  const reply = await call('session.create', { body: { email, password: PASSWORD } });
  assert.equal((await call('session.get', { as: tokenIn(reply) })).body.user.email, email);
  return reply;
});
accounts.add('session.create', 'sign_in_failed', async (call, world) => {
  const { email } = await withPassword(call, world);
  return await call('session.create', { body: { email, password: 'guessed' } });
});
accounts.add('session.createByLink', 'sign_in_failed', (call) =>
  call('session.createByLink', { body: { token: 'made up' } }),
);
accounts.add('session.createByLink', 'ok', async (call, world) => {
  const { email } = await world.person();
  const { secret: token } = await createLocalSignInLink(world.place, email, '1h');
  const reply = await call('session.createByLink', { body: { token } });
  assert.equal((await call('session.createByLink', { body: { token } })).status, 401);
  return reply;
});
accounts.add('session.get', 'ok', async (call, world) => {
  return await call('session.get', { as: await signedIn(call, world) });
});
accounts.add('session.get', 'not_found', (call) => call('session.get'));
accounts.add('session.end', 'ok', async (call, world) => {
  const as = await signedIn(call, world);
  const reply = await call('session.end', { as });
  assert.equal((await call('session.get', { as })).status, 401);
  return reply;
});
accounts.add('session.end', 'not_found', (call) => call('session.end'));
accounts.add('sessions.list', 'ok', async (call, world) => {
  const reply = await call('sessions.list', { as: await signedIn(call, world) });
  assert.deepEqual(
    reply.body.map((session: Reply['body']) => session.is_current),
    [true],
  );
  return reply;
});
accounts.add('sessions.endAll', 'ok', async (call, world) => {
  const { email, token } = await withPassword(call, world);
  const as = tokenIn(await call('session.create', { body: { email, password: PASSWORD } }));
  const reply = await call('sessions.endAll', { as: token });
  assert.equal((await call('session.get', { as })).status, 401);
  return reply;
});
accounts.add('sessions.signUp', 'ok', async (call, world) => {
  const email = `${world.fresh('new')}@acme.example`;
  const { token } = (await call('invites.create', { body: { email } })).body;
  const reply = await call('sessions.signUp', { body: { email, password: PASSWORD, token } });
  const joined = await call('invites.accept', { params: { token }, as: tokenIn(reply) });
  assert.equal(joined.body.role, 'member');
  return reply;
});
accounts.add('sessions.signUp', 'forbidden', async (call, world) => {
  const email = `${world.fresh('new')}@acme.example`;
  return await call('sessions.signUp', { body: { email, password: PASSWORD } });
});
accounts.add('sessions.signUp', 'name_already_exists', async (call, world) => {
  const { email } = await world.person();
  const { token } = (await call('invites.create', { body: { email } })).body;
  return await call('sessions.signUp', { body: { email, password: PASSWORD, token } });
});
accounts.add('password.set', 'ok', async (call, world) => {
  const { email, token: as } = await world.person();
  const reply = await call('password.set', { body: { password: PASSWORD }, as });
  assert.equal((await call('session.create', { body: { email, password: PASSWORD } })).status, 200);
  return reply;
});
accounts.add('password.set', 'forbidden', async (call, world) => {
  const { token: as } = await withPassword(call, world);
  return await call('password.set', { body: { password: 'another one', current_password: 'guessed' }, as });
});
accounts.add('users.remove', 'forbidden', async (call, world) => {
  const { email: confirm, token: as } = await withPassword(call, world);
  return await call('users.remove', { body: { confirm, current_password: 'guessed' }, as });
});
accounts.add('secondFactor.get', 'ok', async (call, world) => {
  const reply = await call('secondFactor.get', { as: (await withSecondFactor(call, world)).as });
  assert.equal(reply.body.is_on, true);
  return reply;
});
accounts.add('secondFactor.begin', 'ok', async (call, world) => {
  return await call('secondFactor.begin', { body: {}, as: (await world.person()).token });
});
accounts.add('secondFactor.begin', 'invalid_state_transition', async (call, world) => {
  return await call('secondFactor.begin', { body: {}, as: (await withSecondFactor(call, world)).as });
});
accounts.add('secondFactor.confirm', 'ok', async (call, world) => {
  const { token: as } = await world.person();
  const { code } = await begun(call, as);
  return await call('secondFactor.confirm', { body: { code: code() }, as });
});
accounts.add('secondFactor.confirm', 'invalid_state_transition', async (call, world) => {
  return await call('secondFactor.confirm', { body: { code: '123456' }, as: (await world.person()).token });
});
accounts.add('secondFactor.remove', 'ok', async (call, world) => {
  const { as, code } = await withSecondFactor(call, world);
  const reply = await call('secondFactor.remove', { body: { code: code() }, as });
  assert.equal((await call('secondFactor.get', { as })).body.is_on, false);
  return reply;
});
accounts.add('secondFactor.remove', 'invalid_state_transition', async (call, world) => {
  return await call('secondFactor.remove', { body: { code: '123456' }, as: (await world.person()).token });
});

async function withPassword(call: Call, world: World) {
  const person = await world.person();
  const reply = await call('password.set', { body: { password: PASSWORD }, as: person.token });
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return person;
}

async function signedIn(call: Call, world: World): Promise<string> {
  const { email } = await withPassword(call, world);
  return tokenIn(await call('session.create', { body: { email, password: PASSWORD } }));
}

async function withSecondFactor(call: Call, world: World) {
  const { token: as } = await world.person();
  const { code } = await begun(call, as);
  const reply = await call('secondFactor.confirm', { body: { code: code() }, as });
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return { as, code };
}

/** Codes that were not used: the oldest that is still taken, or the next one. */
async function begun(call: Call, as: string) {
  const { body } = await call('secondFactor.begin', { body: {}, as });
  const secret = new URL(body.uri).searchParams.get('secret') ?? '';
  let step = 0;
  const code = () => {
    step = Math.max(step + 1, Math.floor(Date.now() / STEP_MS) - 1);
    return codeOfStep(secret, step);
  };
  return { code };
}

/** What the cookie holds, which is a bearer credential too. */
function tokenIn({ headers, body }: Reply): string {
  const token = /svc_session=([^;]+)/.exec(headers.get('set-cookie') ?? '')?.[1];
  assert.ok(token, JSON.stringify(body));
  return token;
}
