import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import {
  Client,
  Images,
  Organization,
  Sandbox,
  SshKeys,
  SvcError,
  Usage,
  verifyWebhook,
  Volume,
} from '../index.ts';

const client = new Client({ apiUrl: 'http://127.0.0.1:1', maxRetries: 0 });

/** As a program without types calls it. */
type Untyped = Record<string, (...args: unknown[]) => unknown>;
const untyped = (value: unknown) => value as Untyped;

async function refusal(call: () => unknown): Promise<SvcError> {
  const error: unknown = await Promise.resolve()
    .then(call)
    .then(
      () => assert.fail('it was not refused'),
      (thrown: unknown) => thrown,
    );
  assert.ok(SvcError.is(error, 'invalid_request'), String(error));
  return error;
}

test('a client with an option that it does not know is not made, and the one that was meant is named', async () => {
  const make = (options: object) => refusal(() => new Client(options));
  assert.equal(
    (await make({ url: 'http://elsewhere' })).message,
    "There is no option 'url' here; did you mean 'apiUrl'?",
  );
  assert.match((await make({ apikey: 'x' })).message, /did you mean 'apiKey'\?$/);
  assert.match((await make({ timeout: 1 })).message, /did you mean 'timeoutMs'\?$/);
  assert.match((await make({ proxy: 1 })).message, /known are apiUrl, apiKey, organization, /);
  assert.deepEqual((await make({ retires: 1 })).details, { field: 'retires' });
  assert.equal(new Client({ url: undefined } as object).apiUrl, 'http://127.0.0.1:5555');
});

test('every call refuses options that it does not know, before anything is sent', async () => {
  const box = untyped(Sandbox);
  const wrong: Record<string, () => unknown> = {
    memoryMib: () => box['create']?.({ client, image: 'x', memory: 512 }),
    isEphemeral: () => box['getOrCreate']?.({ client, name: 'x', image: 'x', ephemeral: true }),
    labels: () => untyped(box['list']?.({ client, label: {} }))['next']?.(),
    timeoutMs: () => box['connect']?.('x', { client, timeout: 1 }),
    capacityGib: () => untyped(Volume)['create']?.({ client, name: 'x', capacity: 1 }),
    from: () => untyped(Usage)['byVolume']?.({ client, fromm: 'x' }),
    onProgress: () => untyped(Images)['pull']?.('x', { client, onprogres: () => 0 }),
    toleranceSecs: () => (verifyWebhook as (...args: unknown[]) => unknown)('x', {}, '', { tolerance: 1 }),
    idempotencyKey: () => untyped(client)['call']?.('sandboxes.list', {}, { idempotency: 'x' }),
    publicKey: () => untyped(SshKeys)['add']?.({ name: 'x', publickey: 'x' }, { client }),
    hosts: () =>
      box['create']?.({ client, image: 'x', secrets: { KEY: { value: 'x', host: ['x.example'] } } }),
    injection: () => box['create']?.({ client, image: 'x', secrets: { KEY: { hosts: [], injections: {} } } }),
    signal: () => untyped(client)['rpc']?.('sandbox.metrics.get', {}, { singal: 1 }),
  };
  for (const [meant, call] of Object.entries(wrong)) {
    assert.match((await refusal(call)).message, new RegExp(`did you mean '${meant}'\\?$`), meant);
  }
});

test('a sandbox that is made from nothing is refused with a word on what it takes', async () => {
  const create = untyped(Sandbox)['create'];
  assert.match((await refusal(() => create?.())).message, /Sandbox\.create\(\{ image: 'python' \}\)/);
  assert.deepEqual((await refusal(() => create?.({ client }))).details, { field: 'image' });
  assert.match((await refusal(() => create?.('python'))).message, /an object, not a string/);
});

test('every option of a sandbox is known, with its fields', async (t) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ id: 'id', name: 'x', status: 'running' }));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as { readonly port: number };
  const sandbox = await Sandbox.connect('x', { client: new Client({ apiUrl: `http://127.0.0.1:${port}` }) });
  const organization = untyped(await Organization.me({ client: sandbox.client }));
  const calls: Record<string, () => unknown> = {
    expiresAt: () => organization['createApiKey']?.({ name: 'x', expires: '2030-01-01T00:00:00Z' }),
    onStdout: () => untyped(sandbox)['exec']?.('true', [], { onStdOut: () => 0 }),
    cwd: () => untyped(sandbox)['shell']?.('true', { cdw: '/' }),
    timeoutMs: () => untyped(sandbox)['runCode']?.('1', { timeout: 1 }),
    maxBytes: () => untyped(sandbox.files)['read']?.('/x', { max: 1 }),
    atomic: () => untyped(sandbox.files)['write']?.('/x', '', { atomicc: true }),
    maxRunSeconds: () => untyped(sandbox.commands)['startDetached']?.('true', [], { maxRun: 1 }),
    rangeSeconds: () => untyped(sandbox)['metrics']?.({ range: 1 }),
    expiresInSecs: () => untyped(sandbox)['url']?.(80, { expires: 1 }),
    follow: () => untyped(untyped(sandbox)['logs']?.({ folow: true }))['next']?.(),
    maxDurationSecs: () => untyped(sandbox)['setLifecycle']?.({ maxDurationSeconds: 1 }),
  };
  for (const [meant, call] of Object.entries(calls)) {
    assert.match((await refusal(call)).message, new RegExp(`did you mean '${meant}'\\?$`), meant);
  }
});
