import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import {
  createLocalApiKey,
  createLocalOrganization,
  createLocalToken,
  setLocalQuotas,
} from '@svc/server/local';
import { imageOf, layerFromTar, layerOf, tarOf } from '../../packages/engine/src/testing/test-layers.ts';
import { TestRegistry } from '../../packages/engine/src/testing/test-registry.ts';
import { TestServer } from '../e2e/start-server.ts';

const run = promisify(execFile);
const MIB = 1024 ** 2;
const MAX_ORGANIZATIONS = 4;

/** What an organization can take of the host's disk by images, and a user by organizations; on a real engine. */
let server: TestServer | undefined;
let registry: TestRegistry;
let attacker: string;
let victim: string;

before(async () => {
  registry = await TestRegistry.start();
  server = await TestServer.start({
    args: ['--max-orgs-per-user', String(MAX_ORGANIZATIONS)],
    engineArgs: ['--insecure-registry', registry.host],
  });
  attacker = await makeTenant('attacker');
  victim = await makeTenant('victim');
  const zeros = await tarOf([{ name: 'zeros', body: Buffer.alloc(300 * MIB) }]);
  await registry.push('other', 'latest', imageOf([await layerOf([{ name: 'other', body: 'other' }])]));
  await registry.push('bomb', 'latest', imageOf([layerFromTar(zeros)]));
  await registry.push(
    'app',
    'latest',
    imageOf([await layerOf([{ name: 'app', body: Buffer.alloc(MIB, 'a') }])]),
  );
});
after(async () => {
  await server?.destroy();
  await registry[Symbol.asyncDispose]();
});

const running = (): TestServer => server ?? assert.fail('the server did not start');
const place = () => ({ dataFolder: running().engine.folder });

async function makeTenant(slug: string): Promise<string> {
  await createLocalOrganization(place(), { slug, owner: `owner@${slug}.example` });
  return (await createLocalApiKey(place(), slug, { name: 'test' })).secret;
}

async function rest(key: string, method: string, path: string, body?: object) {
  const response = await fetch(`${running().url}/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
  return { status: response.status, text, body: isJson ? JSON.parse(text) : undefined };
}

const pull = async (key: string, name: string) =>
  (await rest(key, 'POST', '/images/pull', { reference: `${registry.host}/${name}:latest` })).text;
interface Listed {
  readonly references: readonly string[];
  readonly in_use: boolean;
  readonly is_provided: boolean;
}
const imagesOf = async (key: string): Promise<readonly Listed[]> => {
  const { body } = await rest(key, 'GET', '/images');
  return (body as readonly Listed[]).filter((image) => !image.is_provided);
};
const bytesOf = async (key: string): Promise<number> =>
  (await rest(key, 'GET', '/quotas')).body.image_storage_bytes;

test('a layer of 300 KB that unpacks to 300 MiB is refused, and nothing of it stays', async () => {
  assert.match(await pull(attacker, 'bomb'), /event: error\ndata: .*invalid_image.*--max-unpack-ratio/);
  assert.equal(await bytesOf(attacker), 0);
  const { stdout } = await run('du', ['-sm', join(running().engine.folder, 'images', 'layers')]);
  assert.ok(Number(stdout.split('\t')[0]) < 100, stdout);
});

test('images count for each organization that has them, are listed and removed by it, and for it alone', async () => {
  const reference = `${registry.host}/app:latest`;
  const at = `/images/${encodeURIComponent(reference)}`;
  for (const key of [attacker, victim]) assert.match(await pull(key, 'app'), /event: done/);
  for (const key of [attacker, victim]) assert.ok((await bytesOf(key)) >= MIB);
  const spec = { name: 'kept', image: { type: 'oci', reference } };
  assert.equal((await rest(victim, 'POST', '/sandboxes', spec)).status, 200);
  assert.deepEqual(
    (await imagesOf(attacker)).map((image) => [image.references, image.in_use]),
    [[[reference], false]],
  );
  assert.equal((await rest(attacker, 'DELETE', at)).status, 200);
  assert.deepEqual([await imagesOf(attacker), await bytesOf(attacker)], [[], 0]);
  const again = await rest(attacker, 'DELETE', at);
  assert.deepEqual([again.status, again.body.error.code], [404, 'image_not_found']);
  assert.equal((await imagesOf(victim)).length, 1, "another organization's removal took it away");
});

test('an organization with no room for images gets none, by a pull or by a sandbox, with the reason', async () => {
  await setLocalQuotas(place(), 'attacker', { max_image_storage_gib: 0 });
  assert.match(await pull(attacker, 'other'), /quota_exceeded.*max_image_storage_gib/);
  const image = { type: 'oci', reference: `${registry.host}/other:latest` };
  await rest(attacker, 'POST', '/sandboxes?start=true&wait_for=running', { name: 'greedy', image });
  const { body } = await rest(attacker, 'GET', '/sandboxes/by-name/greedy');
  assert.equal(body.status, 'failed');
  assert.match(body.last_failure_message, /images take all the storage/);
  const { body: events } = await rest(attacker, 'GET', '/events');
  const types = (events.data as { event_type: string }[]).map((event) => event.event_type);
  assert.ok(types.includes('quota_exceeded'), types.join(' '));
});

test('a user owns no more organizations than the operator allows, also when they ask for many at once', async () => {
  const { secret } = await createLocalToken(place(), 'owner@attacker.example', { name: 'test' });
  const asked = Array.from({ length: 12 }, (_, index) =>
    rest(secret, 'POST', '/orgs', { name: `more ${index}`, slug: `more-${index}` }),
  );
  const answers = await Promise.all(asked);
  const made = answers.filter(({ status }) => status === 201 || status === 200);
  assert.equal(made.length, MAX_ORGANIZATIONS - 1, JSON.stringify(answers.map(({ status }) => status)));
  const refused = answers.find(({ status }) => status === 429);
  assert.deepEqual(refused?.body.error.details, {
    limit: 'max_organizations_per_user',
    value: MAX_ORGANIZATIONS + 1,
    maximum: MAX_ORGANIZATIONS,
  });
});
