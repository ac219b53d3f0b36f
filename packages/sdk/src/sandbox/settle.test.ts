import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from '../client/client.ts';
import { SvcError } from '../svc-error.ts';
import { Sandbox } from './sandbox.ts';

const ID = '0b7f3a52-6d1e-4c7a-9a55-2f6a9d0c1e11';
const SHORT_MS = 100;

/** A server that says of the one sandbox that it has these states, one after the other and the last one for ever. */
function serverOf(states: readonly (string | null)[]) {
  const asked: { readonly url: URL; readonly key: string | null }[] = [];
  const fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const text = url instanceof Request ? url.url : url.toString();
    asked.push({ url: new URL(text), key: new Headers(init.headers).get('idempotency-key') });
    const status = states[Math.min(asked.length, states.length) - 1];
    if (status === null) {
      return Response.json({ error: { code: 'sandbox_not_found', message: 'gone' } }, { status: 404 });
    }
    return Response.json({ id: ID, name: 'one', status, last_failure_message: null });
  };
  return { asked, client: new Client({ apiUrl: 'http://server.test', apiKey: 'svc_key', fetch }) };
}

test('a start that outlasts its answer is followed, for as long as the call may take', async () => {
  const { client, asked } = serverOf(['starting', 'starting', 'running']);
  const sandbox = await Sandbox.create({ client, image: 'base' });
  assert.equal(sandbox.status, 'running');
  assert.deepEqual(
    asked.map(({ url }) => url.pathname),
    ['/v1/sandboxes', `/v1/sandboxes/${ID}`, `/v1/sandboxes/${ID}`],
  );
});

test('a call that ends too early says which sandbox it has made', async () => {
  const { client, asked } = serverOf(['starting']);
  const failure = await Sandbox.create({ client, image: 'base', timeoutMs: SHORT_MS }).catch(
    (error: unknown) => error,
  );
  assert.ok(SvcError.is(failure, 'timeout'), String(failure));
  assert.equal(failure.details?.['sandbox_id'], ID);
  const later = serverOf(['running']);
  await Sandbox.create({ client: later.client, image: 'base', timeoutMs: 20_000 });
  const held = [...asked, ...later.asked].map(({ url }) => url.searchParams.get('wait_timeout'));
  assert.deepEqual([held[0], held.at(-1)], ['0', '18'], 'the answer is to come before the call ends');
});

test('a sandbox that disappears during its start is a failed start', async () => {
  const { client } = serverOf(['starting', null]);
  const failure = await Sandbox.create({ client, image: 'base' }).catch((error: unknown) => error);
  assert.ok(SvcError.is(failure, 'start_failed'), String(failure));
  assert.equal(failure.details?.['sandbox_id'], ID);
});

test('the start of another client is awaited without a second one', async () => {
  const { client, asked } = serverOf(['starting', 'starting', 'failed']);
  const sandbox = await Sandbox.connect('one', { client });
  await assert.rejects(sandbox.waitForRunning(), (error) => SvcError.is(error, 'start_failed'));
  assert.ok(asked.every(({ key }) => key === null));
});

test('a key of the caller goes with the create, started or not', async () => {
  const { client, asked } = serverOf(['running']);
  await Sandbox.create({ client, image: 'base', idempotencyKey: 'mine' });
  await Sandbox.create({ client, image: 'base', idempotencyKey: 'mine', start: false });
  await Sandbox.create({ client, image: 'base' });
  const [started, made, other] = asked.map(({ key }) => key);
  assert.deepEqual([started, made], ['mine', 'mine']);
  assert.match(other ?? '', /^[0-9a-f]{32}$/);
});
