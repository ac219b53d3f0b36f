import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { readRecord, startSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

let engine: TestEngine;
before(async () => {
  engine = await TestEngine.start({ args: ['--isolation', 'container'] });
});
after(async () => {
  await engine.destroy();
});

test('neither a sandbox that the host does not let go of nor a torn volume keeps the engine from starting', async () => {
  await engine.client.volumes.createVolume('torn', 16);
  const [steady, stuck, user] = await Promise.all([
    startSandbox(engine, 'container'),
    startSandbox(engine, 'container'),
    startSandbox(engine, 'container', { mounts: [{ type: 'named', name: 'torn', guest: '/torn' }] }),
  ]);
  await engine.client.stopSandbox(user.id, { graceMs: 0 });
  const pids = stuck.hostPids();
  await engine.stop();

  for (const pid of pids) process.kill(pid, 'SIGKILL');
  const stray = join(engine.runFolder, 'rootfs/mounts', stuck.handle, 'stray');
  mkdirSync(stray);
  // As a power cut leaves it: said to run, nothing mounted, the image torn.
  pretendRunning(user.handle);
  const volumes = join(engine.folder, 'volumes');
  truncateSync(join(volumes, readdirSync(volumes)[0] ?? '', 'image.ext4'));

  await engine.launch();
  assert.equal((await steady.sh('echo alive')).stdout, 'alive\n');
  assert.equal((await engine.client.getSandbox(user.id)).end?.reason, 'host_restart');
  assert.equal((await engine.client.getSandbox(stuck.id)).state, 'stopping');
  rmSync(stray, { recursive: true });
  await waitUntil(async () => (await engine.client.getSandbox(stuck.id)).state === 'failed');
  assert.equal((await engine.client.getSandbox(stuck.id)).end?.reason, 'crashed');
});

test('a disk that takes no record refuses a start but not a stop, and the end is written later', async () => {
  const sandbox = await startSandbox(engine, 'container');
  const folder = join(engine.folder, 'sandboxes', sandbox.handle);
  const record = join(folder, 'record.json');
  rmSync(record);
  mkdirSync(record);
  const stopped = await engine.client.stopSandbox(sandbox.id, { graceMs: 1000 });
  assert.equal(stopped.state, 'stopped');
  await assert.rejects(engine.client.startSandbox(sandbox.id));
  assert.equal((await engine.client.getSandbox(sandbox.id)).state, 'stopped');
  rmdirSync(record);
  await waitUntil(() => existsSync(record) && readRecord(record).state === 'stopped');
});

function pretendRunning(handle: string): void {
  const file = join(engine.folder, 'sandboxes', handle, 'record.json');
  const record = readRecord(file);
  const run = { ...record.run, bootId: 'an earlier boot', endedAt: null, end: null };
  writeFileSync(file, JSON.stringify({ ...record, state: 'running', run }));
}
