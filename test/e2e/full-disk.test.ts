import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { SmallDisk } from '../engine/small-disk.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

const DISK_MIB = 384;

describe('a server whose disk is filled by another program', { concurrency: false }, () => {
  let disk: SmallDisk;
  let server: TestServer;
  before(async () => {
    disk = new SmallDisk(DISK_MIB);
    server = await TestServer.start({ parent: disk.folder });
  });
  after(async () => {
    await server.destroy();
    disk[Symbol.dispose]();
  });

  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${server.url}/v1${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    return { status: response.status, body: (await response.json()) as never as Answer };
  };
  interface Answer {
    readonly id: string;
    readonly status: string;
    readonly error: { readonly code: string; readonly message: string; readonly details: unknown };
  }
  const create = (name: string) =>
    ask('POST', '/sandboxes?start=true&wait_for=running', {
      name,
      image: { type: 'oci', reference: BUSYBOX },
    });

  test('a server with a full disk serves, stops and removes, reports the space, and recovers', async () => {
    const [first, second] = [(await create('one')).body, (await create('two')).body];
    assert.deepEqual([first.status, second.status], ['running', 'running']);
    const pids = [server.pid, await server.webPid(), server.engine.pid];
    disk.fill();

    // Log lines that do not fit on the disk must not end the process.
    for (let count = 0; count < 20; count++) await fetch(`${server.url}/metrics`);
    assert.equal((await ask('POST', `/sandboxes/${first.id}/stop`)).status, 200);
    const stateOf = async (id: string) => (await ask('GET', `/sandboxes/${id}`)).body.status;
    await waitUntil(async () => (await stateOf(first.id)) === 'stopped', { what: 'it is stopped' });
    assert.equal((await ask('DELETE', `/sandboxes/${second.id}`)).status, 200);
    await waitUntil(async () => (await ask('GET', `/sandboxes/${second.id}`)).status === 404, {
      what: 'it is removed',
    });
    let refused = await create('three');
    await waitUntil(async () => (refused = await create('three')).status === 507, { what: 'it is refused' });
    assert.equal(refused.body.error.code, 'insufficient_storage');
    assert.match(refused.body.error.message, /Your organization takes .*sandbox one/);
    assert.match(await (await fetch(`${server.url}/metrics`)).text(), /^svc_disk_short 1$/m);
    assert.deepEqual([server.pid, await server.webPid(), server.engine.pid], pids);

    disk.empty();
    await waitUntil(async () => (await create('four')).status === 200, { what: 'it is made' });
    assert.equal((await ask('POST', `/sandboxes/${first.id}/start?wait_for=running`)).body.status, 'running');
    assert.deepEqual([server.pid, await server.webPid(), server.engine.pid], pids);
  });
});
