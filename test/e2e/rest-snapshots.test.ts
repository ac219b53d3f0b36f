import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { RestReply } from '../../packages/server/src/testing/test-server.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

describe('snapshots over REST on the real engine', { concurrency: false }, () => {
  let server: TestServer;
  before(async () => {
    server = await TestServer.start({ args: ['--dev'], engineArgs: ['--isolation', 'container'] });
  });
  after(() => server.destroy());

  const rest = async (method: string, path: string, payload?: unknown): Promise<RestReply['body']> => {
    const response = await fetch(`${server.url}/v1${path}`, {
      method,
      headers: payload === undefined ? {} : { 'content-type': 'application/json' },
      ...(payload === undefined ? {} : { body: JSON.stringify(payload) }),
    });
    return await response.json();
  };
  const sh = async (sandbox: string, script: string): Promise<string> => {
    const { result, error } = await server.call('sandbox.command.run', {
      sandbox,
      command: 'sh',
      args: ['-c', script],
    });
    assert.equal(error, undefined, JSON.stringify(error));
    return (result as { output: string }).output;
  };
  const create = (name: string, from: object) =>
    rest('POST', '/sandboxes?start=true&wait_for=running&wait_timeout=60', {
      name,
      resources: { disk_size_mib: 64 },
      ...from,
    });
  test('a sandbox made from a snapshot of a running one begins with its disk, and neither sees what the other does later', async () => {
    const source = await create('source', { image: { type: 'oci', reference: BUSYBOX } });
    assert.equal(source.status, 'running', JSON.stringify(source));
    await sh('source', 'echo before > /note');
    const asked = await rest('POST', '/snapshots', { kind: 'disk', sandbox_id: source.id, name: 'first' });
    let operation = asked;
    const isDone = async () => {
      operation = await rest('GET', `/snapshot-operations/${asked.id}`);
      return ['succeeded', 'failed'].includes(operation.status);
    };
    await waitUntil(isDone, { timeoutMs: 60_000, what: 'the snapshot' });
    assert.equal(operation.status, 'succeeded', JSON.stringify(operation));

    await sh('source', 'echo after > /note');
    const from = { source: 'disk_snapshot', disk_snapshot_ref: operation.result.location };
    const copy = await create('copy', from);
    assert.equal(copy.status, 'running', JSON.stringify(copy));
    assert.equal(await sh('copy', 'cat /note'), 'before\n');
    await sh('copy', 'echo copy > /note');
    assert.equal(await sh('source', 'cat /note'), 'after\n');

    assert.equal(
      (await rest('DELETE', '/snapshots/by-name/first')).message,
      'Snapshot scheduled for deletion',
    );
    const isGone = async () => (await server.engine.client.listSnapshots()).length === 0;
    await waitUntil(isGone, { timeoutMs: 60_000, what: 'the disk of the snapshot is removed' });
    assert.equal(await sh('copy', 'cat /note'), 'copy\n');
    const refused = await create('late', from);
    assert.equal(refused.error.code, 'snapshot_not_found');
  });
});
