import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { test, type TestContext } from 'node:test';
import { FakeOrchestrator } from '../../testing/fake-orchestrator.ts';
import { ask, DOMAIN, show } from '../../testing/shown-port.ts';
import { makeFolder, startTestServer, type TestServer } from '../../testing/test-server.ts';
import { createApiKey, revokeApiKey } from '../../store/api-keys-and-tokens.ts';
import { findOrganization } from '../../store/organizations.ts';

const RECHECK_MS = 20;

/** One or two servers on one store, and two keys of one organization. */
async function start(t: TestContext, more: { readonly areE2bPortsPublic?: boolean } = {}) {
  const [folder, orchestrator] = [await makeFolder(t), new FakeOrchestrator()];
  const options = { signingKey: new Uint8Array(32).fill(5), folder, orchestrator, isAlone: false };
  const previews = { domain: DOMAIN, scheme: 'http', port: null } as const;
  const shown = await show(
    t,
    // An answer without an end.
    (_request, response) => void response.write('served'),
    { ...options, ...more, previews, previewRecheckMs: RECHECK_MS },
  );
  const { database } = shown.server;
  const organizationId = (await findOrganization(database, 'acme'))?.id ?? '';
  const addKey = async () =>
    await createApiKey(database, organizationId, { name: 'k', createdBy: null, expiresAt: null });
  const openSecond = async () => await startTestServer(t, { ...options, previews });
  return { ...shown, openSecond, organizationId, keys: [await addKey(), await addKey()] as const };
}

interface Tokens {
  readonly sandboxID: string;
  readonly envdAccessToken: string;
  readonly trafficAccessToken: string;
}

async function post<T>(server: TestServer, path: string, key: string, body: object): Promise<T> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  const text = await response.text();
  assert.ok(response.ok, text);
  return JSON.parse(text) as T;
}

/** What the tokens open: contexts, a signed link and a port. */
async function openedBy(server: TestServer, port: number, tokens: Tokens): Promise<readonly boolean[]> {
  const { sandboxID: id, envdAccessToken, trafficAccessToken } = tokens;
  const contexts = await fetch(`${server.url}/contexts`, {
    headers: { 'e2b-sandbox-id': id, 'e2b-sandbox-port': '49999', 'x-access-token': envdAccessToken },
  });
  const hash = createHash('sha256').update(`/a:read::${envdAccessToken}:1`).digest('base64');
  const query = new URLSearchParams({
    path: '/a',
    signature: `v1_${hash.replace(/=+$/, '')}`,
    signature_expiration: '1',
  });
  // Whose signature it is comes before its end.
  const link = await (await fetch(`${server.url}/files?${query.toString()}`)).text();
  const shown = request(server.url, {
    headers: { host: `${port}-${id}.${DOMAIN}`, 'e2b-traffic-access-token': trafficAccessToken },
    agent: false,
  }).end();
  const [answer] = (await once(shown, 'response')) as [IncomingMessage];
  shown.destroy();
  return [contexts.status !== 401, link.includes('already expired'), answer.statusCode !== 403];
}

test('tokens end with the key that they were given to, on all servers, and with their sandbox', async (t) => {
  const { server, openSecond, port, organizationId, keys } = await start(t);
  const [first, other] = keys;
  const made = await post<Tokens>(server, '/v2/sandboxes', first.secret, {
    templateID: 'python',
    network: { allowPublicTraffic: false },
  });
  const volume = await post<{ readonly volumeID: string; readonly token: string }>(
    server,
    '/volumes',
    first.secret,
    { name: 'v' },
  );
  const sibling = await post<Tokens>(server, '/v2/sandboxes', other.secret, { templateID: 'python' });
  // From here on, so that it leaves the starts to the first.
  const second = await openSecond();
  const statusOfVolume = async () =>
    (
      await fetch(`${second.url}/volumecontent/${volume.volumeID}/dir?path=/`, {
        headers: { authorization: `Bearer ${volume.token}` },
      })
    ).status;
  const again = await post<Tokens>(second, `/v2/sandboxes/${made.sandboxID}/connect`, other.secret, {});
  assert.notEqual(again.envdAccessToken, made.envdAccessToken);
  for (const tokens of [made, again])
    assert.deepEqual(await openedBy(second, port, tokens), [true, true, true]);
  assert.notEqual(await statusOfVolume(), 401);

  const kept = request(server.url, {
    headers: {
      host: `${port}-${made.sandboxID}.${DOMAIN}`,
      'e2b-traffic-access-token': made.trafficAccessToken,
    },
    agent: false,
  }).end();
  const [answer] = (await once(kept, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined).resume();
  const ended = new Promise((resolve) => answer.once('close', resolve));
  await revokeApiKey(server.database, organizationId, first.id);
  await ended;
  for (const each of [server, second]) {
    assert.deepEqual(await openedBy(each, port, made), [false, false, false]);
    assert.deepEqual(await openedBy(each, port, again), [true, true, true]);
  }
  assert.equal(await statusOfVolume(), 401);

  // A token of one key is none of another, nor of another sandbox.
  const changed = made.envdAccessToken.replace(first.id, other.id);
  assert.deepEqual(await openedBy(server, port, { ...made, envdAccessToken: changed }), [
    false,
    false,
    false,
  ]);
  const mixed = { ...again, sandboxID: sibling.sandboxID };
  assert.equal((await openedBy(server, port, mixed))[0], false);

  const { status } = await fetch(`${server.url}/sandboxes/${made.sandboxID}`, {
    method: 'DELETE',
    headers: { 'x-api-key': other.secret },
  });
  assert.equal(status, 204);
  const gone = await ask(server, '/contexts', {
    host: new URL(server.url).host,
    headers: {
      'e2b-sandbox-id': made.sandboxID,
      'e2b-sandbox-port': '49999',
      'x-access-token': again.envdAccessToken,
    },
  });
  assert.equal(gone.status, 502);
});

test('where the operator asks for tokens, a port is open when the client said so', async (t) => {
  const { server, port, keys } = await start(t, { areE2bPortsPublic: false });
  const isOpen = async (network: object, isTokenSent = false) => {
    const body = { templateID: 'python', network };
    const { sandboxID: id, trafficAccessToken: token } = await post<Tokens>(
      server,
      '/v2/sandboxes',
      keys[0].secret,
      body,
    );
    const headers = {
      host: `${port}-${id}.${DOMAIN}`,
      ...(isTokenSent ? { 'e2b-traffic-access-token': token } : {}),
    };
    const shown = request(server.url, { headers, agent: false }).end();
    const [{ statusCode }] = (await once(shown, 'response')) as [IncomingMessage];
    shown.destroy();
    return statusCode !== 403;
  };
  assert.deepEqual([await isOpen({}), await isOpen({}, true)], [false, true]);
  assert.equal(await isOpen({ allowPublicTraffic: true }), true);
  assert.equal(await isOpen({ allowPublicTraffic: false }), false);
});
