import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Client, Organization, Sandbox, SvcError } from '@svc/sdk';
import type { CodeRequest } from '../../packages/server/src/code/code-runner.ts';
import { createApiKey, createToken } from '../../packages/server/src/store/api-keys-and-tokens.ts';
import { ensureOrganization, putMember } from '../../packages/server/src/store/organizations.ts';
import { ensureUser } from '../../packages/server/src/store/users.ts';
import { startTestServer, type TestServer } from '../../packages/server/src/testing/test-server.ts';

const CREDENTIAL = { name: 'test', createdBy: null, expiresAt: null } as const;

/** A server that asks for credentials, with organization `acme` and the token of its owner. */
async function started(
  t: TestContext,
  options: Parameters<typeof startTestServer>[1] = {},
): Promise<{ readonly server: TestServer; readonly organizationId: string; readonly owner: Client }> {
  const server = await startTestServer(t, { signingKey: new Uint8Array(32), ...options });
  const organizationId = await ensureOrganization(server.database, 'acme');
  const user = await ensureUser(server.database, 'owner@example.com');
  await putMember(server.database, organizationId, user.id, 'owner');
  const { secret } = await createToken(server.database, user.id, CREDENTIAL);
  const owner = new Client({ apiUrl: server.url, apiKey: secret, organization: 'acme' });
  return { server, organizationId, owner };
}

test('with a token and a slug everything goes below the organization, channels too', async (t) => {
  const { owner } = await started(t);
  await using sandbox = await Sandbox.create({ client: owner, name: 'box', image: 'x' });
  assert.equal((await sandbox.exec('echo', ['hi'])).text(), 'hi\n');
  assert.equal((await Sandbox.connect('box', { client: owner })).id, sandbox.id);
});

test('an owner makes a key, which works until it is revoked', async (t) => {
  const { server, owner } = await started(t);
  const organization = await Organization.me({ client: owner });
  assert.equal(organization.slug, 'acme');
  assert.deepEqual(
    (await Organization.list({ client: owner })).map(({ slug }) => slug),
    ['acme'],
  );
  const made = await organization.createApiKey({ name: 'ci' });
  const keyed = new Client({ apiUrl: server.url, apiKey: made.key });
  assert.equal((await Organization.me({ client: keyed })).slug, 'acme');
  const keys = await Array.fromAsync(organization.apiKeys());
  assert.deepEqual(
    keys.map(({ id, name }) => [id, name]),
    [[made.id, 'ci']],
  );
  await organization.revokeApiKey(made.id);
  await assert.rejects(Organization.me({ client: keyed }), (error) => SvcError.is(error, 'invalid_api_key'));
});

test('members are listed and invited, and the invite comes with its token', async (t) => {
  const { owner } = await started(t);
  const organization = await Organization.me({ client: owner });
  const members = await Array.fromAsync(organization.members());
  assert.deepEqual(
    members.map(({ email, role }) => [email, role]),
    [['owner@example.com', 'owner']],
  );
  assert.ok((await organization.invite('new@example.com')).length > 10);
});

test('code runs in the interpreter of the sandbox, for keys and for tokens of members', async (t) => {
  const asked: CodeRequest[] = [];
  const codeRunner = {
    run: async (request: CodeRequest) => {
      asked.push(request);
      request.listener?.stdout(Buffer.from('2\n'));
      request.listener?.stderr(Buffer.from('oh'));
      request.listener?.ended({
        result: '2',
        exception: null,
        executionCount: null,
        isInterrupted: false,
        isTruncated: false,
      });
      return await Promise.resolve({
        status: 'error',
        output: '2\n',
        error: 'oh',
        truncated: false,
      } as const);
    },
    forget: () => undefined,
  };
  const { server, organizationId, owner } = await started(t, { codeRunner });
  const { secret } = await createApiKey(server.database, organizationId, CREDENTIAL);
  const client = new Client({ apiUrl: server.url, apiKey: secret });
  const sandbox = await Sandbox.create({ client, name: 'box', image: 'x' });
  const expected = {
    status: 'error',
    output: '2\n',
    error: 'oh',
    stderr: 'oh',
    result: '2',
    exception: null,
  };
  for (const caller of [client, owner]) {
    const heard: string[] = [];
    const box = await Sandbox.connect('box', { client: caller });
    const result = await box.runCode('1 + 1', {
      language: 'python',
      timeoutMs: 1500,
      onStdout: (text) => heard.push(text),
      onStderr: (text) => heard.push(text),
    });
    assert.deepEqual(result, { ...expected, isTruncated: false, results: [] });
    assert.deepEqual(heard, ['2\n', 'oh']);
  }
  assert.deepEqual(
    asked.map(({ sandboxId, language, code, timeoutMs }) => [sandboxId, language, code, timeoutMs]),
    Array.from({ length: 2 }, () => [sandbox.id, 'python', '1 + 1', 1500]),
  );
  const noted = async () => {
    const { data } = await client.call('events.list', { query: { event_type: 'exec_started' } });
    return data.map(({ payload }) => (payload as { readonly code: string }).code);
  };
  await waitUntil(async () => (await noted()).length >= 2, 'both runs are in the log');
  assert.deepEqual(await noted(), ['1 + 1', '1 + 1']);
  await sandbox.runCode('1');
  assert.equal(asked.at(-1)?.language, 'python', 'without a word about it');
  await sandbox.stop();
  const late = sandbox.runCode('1', { language: 'python' });
  await assert.rejects(late, (error) => SvcError.is(error, 'sandbox_not_running'));
});
