import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { SmallDisk } from '../engine/small-disk.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

const DISK = /^The disk of the server's data folder is read-only \(EROFS\).*`svc doctor`$/;

interface Answer {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string; readonly details: unknown };
}

describe('a server whose disk has become read-only', { concurrency: false }, () => {
  let disk: SmallDisk;
  let server: TestServer;
  before(async () => {
    disk = new SmallDisk(384);
    server = await TestServer.start({ parent: disk.folder });
    // The copy of its images; what server and engine write themselves they flush.
    execFileSync('sync', ['--file-system', disk.folder]);
  });
  after(async () => {
    await server.stop();
    await server.engine.kill();
    disk.repair();
    await server.destroy();
    disk[Symbol.dispose]();
  });

  const ask = async (method: string, path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { body: JSON.stringify(body), headers };
    const response = await fetch(`${server.url}/v1${path}`, { method, ...sent });
    return { status: response.status, body: (await response.json()) as Answer };
  };
  const create = (name: string) => {
    const image = { type: 'oci', reference: BUSYBOX };
    return ask('POST', '/sandboxes?start=true&wait_for=running', { name, image });
  };
  const health = async () => {
    const response = await fetch(`${server.url}/api/v1/health`);
    return `${response.status} ${await response.text()}`;
  };

  test('health tells, changes are 503 that name the disk, reads go on, and a repair ends it', async () => {
    const { id } = (await create('one')).body;
    const pids = [server.pid, await server.webPid(), server.engine.pid];
    disk.fail();
    await waitUntil(async () => (await health()).startsWith('503'), { what: 'health tells' });
    assert.match(await health(), /data folder is read-only/);

    for (const { status, body } of [
      await create('two'),
      await ask('POST', `/sandboxes/${id}/stop`),
      await ask('DELETE', `/sandboxes/${id}`),
      await ask('POST', '/volumes', { name: 'data' }),
    ]) {
      assert.deepEqual([status, body.error.code], [503, 'unavailable'], JSON.stringify(body));
      assert.match(body.error.message, DISK);
    }
    const called = await server.call('sandbox.start', { sandbox: 'three', config: { image: BUSYBOX } });
    assert.match(JSON.stringify(called.error), /sandbox start failed: The disk of the server's data folder/);
    assert.equal((await ask('GET', `/sandboxes/${id}`)).body.status, 'running');
    assert.deepEqual([server.pid, await server.webPid(), server.engine.pid], pids);

    await server.stop();
    await server.engine.kill();
    disk.repair();
    await server.engine.launch();
    await server.launch();
    assert.match(await health(), /^200 /);
    assert.equal((await create('four')).body.status, 'running');
    assert.equal((await ask('DELETE', `/sandboxes/${id}`)).status, 200);
  });
});
