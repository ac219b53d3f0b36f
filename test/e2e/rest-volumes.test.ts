import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { encodeVolumePath } from '@svc/contract/rest';
import { volumeStoreSuite } from '../../packages/server/src/orchestrator/volume-store.suite.ts';
import type { RestReply } from '../../packages/server/src/testing/test-server.ts';
import { startSandbox, TestSandbox } from '../engine/sandbox-fixture.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

let server: TestServer;
before(async () => {
  server = await TestServer.start({ engineArgs: ['--isolation', 'container'] });
});
after(() => server.destroy());

volumeStoreSuite('of the engine of this host', () => server.engine.client.volumes);

type Reply = Pick<RestReply, 'status' | 'body'>;

async function rest(
  method: string,
  path: string,
  options: { readonly body?: unknown; readonly headers?: Record<string, string> } = {},
): Promise<Reply> {
  const { body, headers = {} } = options;
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const response = await fetch(`${server.url}/v1${path}`, {
    method,
    headers: isRaw ? headers : { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
  });
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
  return {
    status: response.status,
    body: isJson ? await response.json() : Buffer.from(await response.arrayBuffer()),
  };
}

const at = (path: string, more: Record<string, string> = {}) => ({
  headers: { 'x-svc-file-path': encodeVolumePath(path), ...more },
});
const put = (id: string, path: string, body: string | Uint8Array) =>
  rest('PUT', `/volumes/${id}/files/content`, { ...at(path), body });
const read = async (id: string, path: string): Promise<string> =>
  (await rest('GET', `/volumes/${id}/files/content`, at(path))).body.toString();
const list = async (id: string, path = ''): Promise<readonly string[]> =>
  (await rest('GET', `/volumes/${id}/files`, at(path))).body.entries.map(
    (entry: { path: string }) => entry.path,
  );

let count = 0;
async function createVolume(
  capacityGib: number | null = 1,
): Promise<{ readonly id: string; readonly name: string }> {
  count += 1;
  const { status, body } = await rest('POST', '/volumes', {
    body: { name: `volume-${count}`, capacity_gib: capacityGib },
  });
  assert.equal(status, 200, JSON.stringify(body));
  return body as { id: string; name: string };
}

describe('volumes over HTTP on the real engine', { concurrency: false }, () => {
  test('a volume is made, holds files, grows, shrinks to what it holds, and is deleted', async () => {
    const { id } = await createVolume();
    assert.equal((await put(id, 'deep/file', Buffer.alloc(3 * MIB, 'x'))).status, 200);
    const { body: listed } = await rest('GET', '/volumes');
    const found = listed.find((volume: { id: string }) => volume.id === id);
    assert.ok(found.used_bytes >= 3 * MIB && found.used_bytes < 4 * MIB, `${found.used_bytes}`);
    const grown = await rest('PATCH', `/volumes/${id}`, { body: { capacity_gib: 3 } });
    assert.deepEqual([grown.status, grown.body.capacity_bytes], [200, 3 * GIB]);
    assert.equal((await server.engine.client.volumes.volumeUsage(id)).capacityBytes, 3 * GIB);
    const shrunk = await rest('PATCH', `/volumes/${id}`, { body: { capacity_gib: 1 } });
    assert.equal(shrunk.status, 200, JSON.stringify(shrunk.body));
    assert.equal((await read(id, 'deep/file')).length, 3 * MIB);
    const deleted = await rest('DELETE', `/volumes/${id}`);
    assert.match(deleted.body.message, /scheduled for deletion/);
    await isGone(id);
  });

  test('files are listed, described, copied, renamed and removed', async () => {
    const { id } = await createVolume();
    const files = `/volumes/${id}/files`;
    await put(id, 'a/b/ü', 'content');
    const { body: described } = await rest('GET', `${files}/stat`, at('a/b/ü'));
    assert.partialDeepStrictEqual(described.metadata, {
      path: 'a/b/ü',
      kind: 'file',
      size: 7,
      mode: 0o644,
      readonly: false,
    });
    assert.equal((await rest('POST', `${files}/mkdir`, { body: { path: 'x/y' } })).status, 200);
    assert.equal((await rest('POST', `${files}/copy`, { body: { from: 'a', to: 'x/a' } })).status, 200);
    assert.equal(
      (await rest('POST', `${files}/rename`, { body: { from: 'x/a/b/ü', to: 'moved' } })).status,
      200,
    );
    assert.deepEqual(await list(id), ['a', 'moved', 'x']);
    assert.equal(await read(id, 'moved'), 'content');
    assert.equal((await rest('GET', `${files}/exists`, at('a/b/none'))).body.exists, false);
    assert.equal((await rest('GET', `${files}/exists`, at('moved/below'))).body.exists, false);
    assert.equal((await rest('DELETE', files, at('a'))).status, 400);
    assert.equal((await rest('DELETE', files, at('a', { 'x-svc-file-recursive': 'true' }))).status, 200);
    assert.deepEqual(await list(id), ['moved', 'x']);
    const many = await rest('POST', `/orgs/default${files}/exists`, {
      body: { paths: ['moved', 'a', 'x/y'] },
    });
    assert.deepEqual(many.body, { existing_paths: ['moved', 'x/y'] });
    await rest('DELETE', `/volumes/${id}`);
  });

  test('paths that are malformed are 400, files that are missing 404, and a full volume is 507', async () => {
    const { id } = await createVolume();
    const code = async (reply: Promise<Reply>) => {
      const { status, body } = await reply;
      return `${status} ${body.error?.code}`;
    };
    for (const path of [
      '../x',
      '/etc/passwd',
      'a/../../b',
      'nul\0',
      'x'.repeat(256),
      `${'a/'.repeat(2100)}b`,
    ]) {
      assert.equal(await code(put(id, path, 'evil')), '400 invalid_volume_path', path.slice(0, 20));
      assert.equal(
        await code(rest('GET', `/volumes/${id}/files/content`, at(path))),
        '400 invalid_volume_path',
      );
    }
    await server.engine.client.volumes.resizeVolume(id, 96);
    assert.equal(await code(put(id, 'large', Buffer.alloc(160 * MIB))), '507 disk_full');
    assert.ok(!(await list(id)).includes('large'));
    const reserved = `.svc-tmp-${'0'.repeat(32)}`;
    assert.equal(await code(put(id, reserved, 'x')), '400 invalid_volume_path');
    assert.equal(
      await code(rest('GET', `/volumes/${id}/files/content`, at('none'))),
      '404 volume_file_not_found',
    );
    assert.equal(await code(rest('GET', `/volumes/${id}/files`, at('none'))), '404 volume_file_not_found');
    await rest('DELETE', `/volumes/${id}`);
  });

  test('a sandbox sees what the file API wrote and the other way round, and its links lead nowhere', async () => {
    const { id, name } = await createVolume();
    await put(id, 'from-api', 'hello');
    const sandbox = await startWithVolume(name);
    assert.equal((await sandbox.sh('cat /data/from-api')).stdout, 'hello');
    await sandbox.sh('mkdir /data/sub; echo -n inside > /data/sub/file; ln -s /etc/passwd /data/link');
    await sandbox.sh('ln -s ../../.. /data/up');
    assert.equal(await read(id, 'sub/file'), 'inside');
    assert.deepEqual(await list(id), ['from-api', 'link', 'sub', 'up']);
    await put(id, 'sub/file', 'from outside');
    assert.equal((await sandbox.sh('cat /data/sub/file')).stdout, 'from outside');
    assert.equal((await rest('GET', `/volumes/${id}/files/content`, at('link'))).status, 404);
    assert.equal((await rest('GET', `/volumes/${id}/files/content`, at('up/etc/passwd'))).status, 404);
    const refused = await rest('DELETE', `/volumes/${id}`);
    assert.deepEqual([refused.status, refused.body.error.code], [409, 'volume_in_use']);
    assert.equal((await rest('DELETE', `/sandboxes/${sandbox.id}`)).status, 200);
    await waitUntil(async () => (await rest('DELETE', `/volumes/${id}`)).status === 200);
    await isGone(id);
  });

  test('a volume that the engine still has in a sandbox is deleted when that is gone', async () => {
    const { id } = await createVolume();
    const mounts = [{ type: 'named' as const, name: 'data', guest: '/data' }];
    const sandbox = await startSandbox(server.engine, 'container', { mounts }, { volumes: { data: id } });
    assert.equal((await rest('DELETE', `/volumes/${id}`)).status, 200);
    assert.equal((await rest('GET', `/volumes/${id}`)).body.status, 'deleting');
    await sandbox.remove();
    await isGone(id);
  });

  test('while the engine is away files are 502, and lists have no usage', async () => {
    const { id } = await createVolume();
    await put(id, 'file', 'kept');
    await server.engine.kill();
    const { status, body } = await rest('GET', `/volumes/${id}/files`, at(''));
    assert.deepEqual([status, body.error.code], [502, 'orchestrator_unreachable']);
    assert.equal((await rest('POST', '/volumes', { body: { name: 'none' } })).status, 502);
    const listed = await rest('GET', '/volumes');
    assert.equal(listed.status, 200);
    assert.ok(listed.body.every((volume: { used_bytes: unknown }) => volume.used_bytes === null));
    await rest('DELETE', `/volumes/${id}`);
    await server.engine.launch();
    await isGone(id);
    assert.equal((await rest('POST', '/volumes', { body: { name: 'none' } })).status, 200);
  });

  test('a server that is killed in an upload leaves the old file, and nothing of the new one', async () => {
    const { id } = await createVolume();
    await put(id, 'file', 'old');
    const upload = request(`${server.url}/v1/volumes/${id}/files/content`, { method: 'PUT', ...at('file') });
    upload.on('error', () => undefined);
    const closed = new Promise((resolve) => void upload.once('close', resolve));
    upload.write(Buffer.alloc(4 * MIB, 'n'));
    await waitUntil(async () => (await server.engine.client.volumes.volumeUsage(id)).usedBytes > MIB, {
      what: 'a part of the upload has arrived',
    });
    await server.kill();
    await closed;
    await server.launch();
    assert.equal(await read(id, 'file'), 'old');
    assert.deepEqual(await list(id), ['file']);
    await waitUntil(async () => (await server.engine.client.volumes.volumeUsage(id)).usedBytes < MIB, {
      what: 'the half-written file is gone',
    });
    await rest('DELETE', `/volumes/${id}`);
  });

  test('a server that is killed right after it accepted a deletion finishes it when it is back', async () => {
    const volumes = await Promise.all([createVolume(), createVolume(), createVolume()]);
    await server.engine.kill();
    for (const { id } of volumes) assert.equal((await rest('DELETE', `/volumes/${id}`)).status, 200);
    await server.kill();
    await server.engine.launch();
    await server.launch();
    for (const { id } of volumes) await isGone(id);
  });

  test('a volume that was recorded but not made is made when the server is back', async () => {
    const requests = Array.from({ length: 8 }, (_, index) =>
      rest('POST', '/volumes', { body: { name: `killed-${index}` } }).catch(() => undefined),
    );
    await requests[0];
    await server.kill();
    await Promise.all(requests);
    await server.launch();
    await waitUntil(
      async () => {
        const { body: listed } = await rest('GET', '/volumes');
        return listed.every((volume: { used_bytes: number | null }) => volume.used_bytes !== null);
      },
      { what: 'every recorded volume is there' },
    );
    const { body: listed } = await rest('GET', '/volumes');
    const known = new Set(listed.map((volume: { id: string }) => volume.id));
    const made = await server.engine.client.volumes.listVolumes();
    assert.deepEqual(
      made.filter((volume) => !known.has(volume.id)),
      [],
    );
  });
});

async function startWithVolume(volume: string): Promise<TestSandbox> {
  const { status, body } = await rest('POST', '/sandboxes?start=true&wait_for=running&wait_timeout=60', {
    body: {
      name: `with-${volume}`,
      image: { type: 'oci', reference: BUSYBOX },
      mounts: [{ type: 'named', name: volume, guest: '/data' }],
    },
  });
  assert.deepEqual([status, body.status], [200, 'running'], JSON.stringify(body));
  return new TestSandbox(server.engine, await server.engine.client.getSandbox(body.id));
}

async function isGone(id: string): Promise<void> {
  await waitUntil(async () => (await rest('GET', `/volumes/${id}`)).status === 404, {
    what: 'the volume is gone',
  });
  assert.ok(!(await server.engine.client.volumes.listVolumes()).some((volume) => volume.id === id));
}
