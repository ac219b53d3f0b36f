import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { RestReply } from '../../packages/server/src/testing/test-server.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: RestReply['body'];
}

describe('sandboxes over REST on the real engine', { concurrency: false }, () => {
  let server: TestServer;
  before(async () => {
    server = await TestServer.start({ engineArgs: ['--isolation', 'container'] });
  });
  after(() => server.destroy());

  const rest = async (method: string, path: string, payload?: unknown): Promise<Reply> => {
    const response = await fetch(`${server.url}/v1${path}`, {
      method,
      headers: payload === undefined ? {} : { 'content-type': 'application/json' },
      ...(payload === undefined ? {} : { body: JSON.stringify(payload) }),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  const body = (name: string, more: object = {}) => ({
    name,
    image: { type: 'oci', reference: BUSYBOX },
    ...more,
  });
  const run = async (name: string, more: object = {}) => {
    const reply = await rest(
      'POST',
      '/sandboxes?start=true&wait_for=running&wait_timeout=60',
      body(name, more),
    );
    assert.deepEqual([reply.status, reply.body.status], [200, 'running'], JSON.stringify(reply.body));
    return reply.body;
  };
  const until = async (name: string, status: string) => {
    let seen = await rest('GET', `/sandboxes/by-name/${name}`);
    const isThere = async () => {
      seen = await rest('GET', `/sandboxes/by-name/${name}`);
      return seen.body.status === status;
    };
    await waitUntil(isThere, { timeoutMs: 60_000, what: `${name} is ${status}` }).catch(() => {
      assert.equal(seen.body.status, status, seen.body.last_failure_message);
    });
    return seen.body;
  };
  const refused = (reply: Reply, status: number, code: string) =>
    assert.deepEqual([reply.status, reply.body.error?.code], [status, code]);
  const sh = async (sandbox: string, script: string): Promise<string> => {
    const { result, error } = await server.call('sandbox.command.run', {
      sandbox,
      command: 'sh',
      args: ['-c', script],
    });
    assert.equal(error, undefined, JSON.stringify(error));
    return (result as { output: string }).output;
  };

  test('create, start, use, stop, start again with its disk, delete', async () => {
    const made = await rest('POST', '/sandboxes', body('life', { env: [{ key: 'A', value: 'b' }] }));
    assert.deepEqual([made.status, made.body.status], [200, 'created']);
    refused(await rest('POST', '/sandboxes/by-name/life/stop'), 409, 'invalid_state_transition');
    const started = await rest('POST', `/sandboxes/${made.body.id}/start?wait_for=running`);
    assert.partialDeepStrictEqual(started.body, {
      status: 'running',
      isolation: 'container',
      stopped_at: null,
    });
    assert.equal(await sh('life', 'echo $A; echo kept > /note'), 'b\n');
    refused(await rest('POST', '/sandboxes/by-name/life/start'), 409, 'invalid_state_transition');
    const stopping = await rest('POST', '/sandboxes/by-name/life/stop');
    assert.deepEqual([stopping.status, stopping.body.status], [200, 'stopping']);
    const stopped = await until('life', 'stopped');
    assert.ok(stopped.stopped_at >= stopped.started_at);
    await rest('POST', '/sandboxes/by-name/life/start?wait_for=running');
    assert.equal(await sh('life', 'cat /note'), 'kept\n');
    const removed = await rest('DELETE', '/sandboxes/by-name/life');
    assert.equal(removed.status, 200);
    refused(await rest('GET', '/sandboxes/by-name/life'), 404, 'sandbox_not_found');
    await waitUntil(async () => {
      const views = await server.engine.client.listSandboxes();
      return !views.some(({ id }) => id === made.body.id);
    });
  });

  test('a missing image fails the start and is named', async () => {
    const reply = await rest('POST', '/sandboxes?start=true&wait_for=running', {
      name: 'no-image',
      source: 'oci',
      reference: 'svc/no-such-image',
      pull_policy: 'never',
    });
    assert.deepEqual([reply.status, reply.body.status], [200, 'failed']);
    assert.match(reply.body.last_failure_message, /svc\/no-such-image/);
    assert.equal((await rest('DELETE', '/sandboxes/by-name/no-image')).status, 200);
  });

  test('labels and pages select what was made', async () => {
    for (let n = 0; n < 5; n += 1) {
      await rest(
        'POST',
        '/sandboxes',
        body(`label-${n}`, { labels: { suite: 'e2e', odd: String(n % 2 === 1) } }),
      );
      // Each in a millisecond of its own: that is how fine the order of a list is.
      const now = Date.now();
      while (Date.now() === now) await new Promise((resolve) => setImmediate(resolve));
    }
    const names = async (query: string) => {
      const seen: string[] = [];
      for (let cursor = ''; ;) {
        const { body: page } = await rest('GET', `/sandboxes?limit=2&${query}${cursor}`);
        seen.push(...page.data.map(({ name }: { name: string }) => name));
        if (!page.has_more) return seen;
        cursor = `&cursor=${page.next_cursor}`;
      }
    };
    const labels = (value: object) => `labels=${encodeURIComponent(JSON.stringify(value))}`;
    assert.deepEqual(await names(labels({ suite: 'e2e' })), [
      'label-4',
      'label-3',
      'label-2',
      'label-1',
      'label-0',
    ]);
    assert.deepEqual(await names(labels({ suite: 'e2e', odd: 'true' })), ['label-3', 'label-1']);
    for (let n = 0; n < 5; n += 1) await rest('DELETE', `/sandboxes/by-name/label-${n}`);
    assert.deepEqual(await names(labels({ suite: 'e2e' })), []);
  });

  test('an ephemeral sandbox is removed when it ends, with or without a stop', async () => {
    const lifecycle = { ephemeral: true };
    const stopped = await run('short', { lifecycle });
    await rest('POST', `/sandboxes/${stopped.id}/stop`);
    await waitUntil(async () => (await rest('GET', `/sandboxes/${stopped.id}`)).status === 404, {
      timeoutMs: 30_000,
    });
    const runtime = { cmd: ['sh', '-c', 'sleep 0.5'] };
    const reply = await rest('POST', '/sandboxes?start=true', body('short', { lifecycle, runtime }));
    await waitUntil(async () => (await rest('GET', `/sandboxes/${reply.body.id}`)).status === 404, {
      timeoutMs: 30_000,
    });
    await waitUntil(async () => (await server.engine.client.listSandboxes()).length === 0, {
      timeoutMs: 30_000,
    });
  });

  test('a bind mount of the host volume and a named volume hold files between sandboxes', async () => {
    const volume = await rest('POST', '/volumes', { name: 'shared-data', capacity_gib: 1 });
    assert.equal(volume.status, 200, JSON.stringify(volume.body));
    const host = await rest('GET', '/volumes/default');
    await rest('POST', `/volumes/${host.body.id}/files/mkdir`, { path: 'inbox' });
    const mounts = [
      { type: 'named', name: 'shared-data', guest: '/data' },
      { type: 'bind', host: 'inbox', guest: '/inbox' },
    ];
    const first = await run('writer', { mounts });
    await sh('writer', 'echo over > /data/note; echo in > /inbox/note; sync');
    const listed = await rest('GET', `/sandboxes/${first.id}/volumes`);
    assert.deepEqual(listed.body, [
      { volume_id: volume.body.id, name: 'shared-data', mount_path: '/data', read_only: false },
      { volume_id: host.body.id, name: null, mount_path: '/inbox', read_only: false },
    ]);
    await rest('DELETE', '/sandboxes/by-name/writer');
    const options = { readonly: true };
    await run('reader', { mounts: mounts.map((mount) => ({ ...mount, options })) });
    assert.equal(await sh('reader', 'cat /data/note /inbox/note'), 'over\nin\n');
    assert.equal(await sh('reader', 'echo x 2>/dev/null > /data/note || echo refused'), 'refused\n');
    await rest('DELETE', '/sandboxes/by-name/reader');
  });

  test('kill -9 of the server during 20 starts: every one of them runs in the end, once', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `burst-${n}`);
    const resources = { vcpus: 1, memory_mib: 64 };
    const asked = names.map((name) => rest('POST', '/sandboxes?start=true', body(name, { resources })));
    for (const { status, body: answer } of await Promise.all(asked)) {
      assert.equal(status, 200, JSON.stringify(answer));
    }
    await server.kill();
    await server.launch();
    for (const name of names) await until(name, 'running');
    const views = await server.engine.client.listSandboxes();
    assert.equal(views.filter(({ state }) => state === 'running').length, names.length);
    await Promise.all(names.map((name) => rest('DELETE', `/sandboxes/by-name/${name}`)));
    await waitUntil(async () => (await server.engine.client.listSandboxes()).length === 0, {
      timeoutMs: 60_000,
    });
  });
});
