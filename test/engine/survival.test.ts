import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ChannelClient } from '@svc/contract';
import { waitUntil } from '@svc/contract/testing';
import {
  CLASSES,
  readRecord,
  specOf,
  startSandbox,
  TestSandbox,
  type StoredRecord,
} from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

/** More than there are places to start in. */
const MANY = 60;

let engine: TestEngine;
before(async () => {
  engine = await TestEngine.start();
});
after(async () => {
  await engine.destroy();
});

async function states(): Promise<Record<string, string>> {
  return Object.fromEntries((await engine.client.listSandboxes()).map(({ id, state }) => [id, state]));
}

/** As if the last engine had left it so. */
async function changeRecord(id: string, change: (record: StoredRecord) => object): Promise<void> {
  const folder = join(engine.folder, 'sandboxes');
  for (const handle of await readdir(folder)) {
    const path = join(folder, handle, 'record.json');
    const record = readRecord(path);
    if (record.id === id) writeFileSync(path, JSON.stringify(change(record)));
  }
}

/** Endless content. */
async function* endless(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('half');
  await new Promise(() => undefined);
}

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('a running sandbox and its processes survive kill -9 of the engine', async () => {
      const sandbox = await startSandbox(engine, isolation);
      await sandbox.sh('(while :; do date +%s%N > /tmp/beat; sleep 0.05; done) > /dev/null 2>&1 &');
      // The file is empty for a moment at each beat.
      const beat = async () => (await sandbox.sh('cat /tmp/beat')).stdout;
      let before = '';
      await waitUntil(async () => (before = await beat()) !== '');
      await engine.restart();
      assert.equal((await engine.client.getSandbox(sandbox.id)).state, 'running');
      await waitUntil(async () => (await beat()) > before);
      await sandbox.remove();
    });

    test('a sandbox survives a kill of the engine at the very moment it was said to run', async () => {
      for (let round = 0; round < 3; round++) {
        const sandbox = await startSandbox(engine, isolation);
        await engine.restart();
        assert.equal((await engine.client.getSandbox(sandbox.id)).state, 'running');
        assert.equal((await sandbox.sh('echo alive')).stdout, 'alive\n');
        await sandbox.remove();
      }
    });

    test('of a file whose content breaks off nothing is left: its client goes, the engine is killed, the sandbox stops', async () => {
      const sandbox = await startSandbox(engine, isolation);
      const inFolder = async () => (await sandbox.sh('ls -A /root/up')).stdout.split('\n');
      await sandbox.sh('mkdir /root/up; echo old > /root/up/file');
      const ways = [
        async (channel: ChannelClient) => channel.close(),
        () => engine.restart(),
        async () => {
          await engine.client.stopSandbox(sandbox.id);
          await engine.client.startSandbox(sandbox.id);
        },
      ];
      for (const breakOff of ways) {
        const channel = await sandbox.connect();
        const writing = channel.files.replaceFile('/root/up/file', endless());
        const ended = assert.rejects(writing);
        await waitUntil(async () => (await inFolder()).some((name) => name.startsWith('.svc-partial-')));
        await breakOff(channel);
        await ended;
        await waitUntil(async () => (await inFolder()).join() === 'file,', { what: 'it is gone' });
        channel.close();
      }
      assert.equal((await sandbox.sh('cat /root/up/file')).stdout, 'old\n');
      const channel = await sandbox.connect();
      await channel.files.replaceFile('/root/up/file', Buffer.from('new'));
      channel.close();
      assert.equal((await sandbox.sh('cat /root/up/file; ls -A /root/up')).stdout, 'newfile\n');
      await sandbox.remove();
    });

    test('output of the main process is neither lost nor repeated over kills of the engine', async () => {
      const script =
        'i=0; while [ $i -lt 2000 ]; do echo line-$i; i=$((i+1)); [ $((i % 50)) = 0 ] && sleep 0.05; done; sleep 1000';
      const sandbox = await startSandbox(engine, isolation, { runtime: { cmd: ['/bin/sh', '-c', script] } });
      const lines = async () =>
        (await Array.fromAsync(engine.client.logs(sandbox.id)))
          .map(({ text }) => text)
          .join('')
          .split('\n')
          .slice(0, -1);
      await waitUntil(async () => (await lines()).length > 100);
      await engine.restart();
      await engine.restart();
      await waitUntil(async () => (await lines()).length >= 2000);
      assert.deepEqual(
        await lines(),
        Array.from({ length: 2000 }, (_, index) => `line-${index}`),
      );
      await sandbox.remove();
    });

    test('a sandbox that ended while no engine ran is reported as ended, not as running', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        runtime: { cmd: ['/bin/sh', '-c', 'sleep 2; exit 4'] },
      });
      await engine.kill();
      await new Promise((resolve) => setTimeout(resolve, 3000));
      await engine.launch();
      await waitUntil(async () => (await engine.client.getSandbox(sandbox.id)).state === 'failed');
      assert.equal((await engine.client.getSandbox(sandbox.id)).end?.exitCode, 4);
      await sandbox.remove();
    });

    test('kill -9 at any moment of creates, stops and removes leaves records and reality in agreement', async () => {
      for (let round = 0; round < 6; round++) {
        const ids = Array.from({ length: 6 }, (_, index) => `${isolation}-${round}-${index}`);
        const work = Promise.allSettled(
          ids.map(async (id, index) => {
            await engine.client.createSandbox({ id, isolation, spec: specOf(), start: true });
            if (index % 3 === 0) await engine.client.stopSandbox(id, { graceMs: 0 });
            if (index % 3 === 1) await engine.client.removeSandbox(id);
          }),
        );
        await new Promise((resolve) => setTimeout(resolve, 30 + round * 60));
        await engine.kill();
        await work;
        await engine.launch();
        const after = await states();
        for (const [id, state] of Object.entries(after)) {
          if (state !== 'running') continue;
          const sandbox = new TestSandbox(engine, await engine.client.getSandbox(id));
          assert.equal((await sandbox.sh('echo alive')).stdout, 'alive\n', `${id} says it runs`);
        }
        await engine.restart();
        assert.deepEqual(await states(), after, 'a second recovery changes nothing');
        for (const id of ids) await engine.client.removeSandbox(id);
      }
      await engine.stop();
      assert.deepEqual(await engine.leftovers(), []);
      await engine.launch();
    });

    test('kill -9 while starts wait for their places leaves each of them at rest, to be started or removed', async () => {
      const ids = Array.from({ length: MANY }, (_, index) => `${isolation}-waiting-${index}`);
      const work = ids.map(
        async (id) => await engine.client.createSandbox({ id, isolation, spec: specOf(), start: true }),
      );
      await Promise.any(work);
      const during = Object.values(await states());
      await engine.kill();
      await Promise.allSettled(work);
      assert.ok(during.some((state) => state !== 'running'));
      await engine.launch();
      const after = Object.entries(await states());
      const resting = after.filter(([, state]) => state !== 'running');
      assert.ok(resting.length > 0);
      for (const [id, state] of resting)
        assert.ok(['created', 'stopped'].includes(state), `${id} is ${state}`);
      for (const [id] of resting.slice(0, 2))
        assert.equal((await engine.client.startSandbox(id)).state, 'running');
      for (const [id] of after) await engine.client.removeSandbox(id);
      assert.deepEqual(await readdir(join(engine.folder, 'sandboxes')), []);
      await engine.stop();
      assert.deepEqual([await engine.leftovers(), disksOf(engine.folder)], [[], []]);
      await engine.launch();
    });
  });
}

/** Loop devices on files below the folder. */
function disksOf(folder: string): string[] {
  const files = globSync('/sys/block/loop*/loop/backing_file').map((path) => readFileSync(path, 'utf8'));
  return files.filter((path) => path.startsWith(folder));
}

test('a start that the engine did not live to finish leaves a sandbox stopped, and it can be started', async () => {
  const sandbox = await startSandbox(engine, 'container');
  await engine.client.stopSandbox(sandbox.id, { graceMs: 0 });
  await engine.stop();
  await changeRecord(sandbox.id, (record) => ({ ...record, state: 'starting', run: null }));
  await engine.launch();
  const { state, end } = await engine.client.getSandbox(sandbox.id);
  assert.equal(state, 'stopped');
  assert.match(end?.message ?? '', /restarted during the start/);
  assert.equal((await engine.client.startSandbox(sandbox.id)).state, 'running');
  await sandbox.remove();
});

test('after a reboot of the host a run is reported as ended by it', async () => {
  const sandbox = await startSandbox(engine, 'container');
  await engine.stop();
  // Another boot id in the record is what a reboot looks like to the next engine.
  await changeRecord(sandbox.id, (record) => ({
    ...record,
    run: { ...record.run, bootId: 'an earlier boot' },
  }));
  await engine.launch();
  const ended = await engine.client.getSandbox(sandbox.id);
  assert.equal(ended.state, 'failed');
  assert.equal(ended.end?.reason, 'host_restart');
  assert.equal((await engine.client.startSandbox(sandbox.id)).state, 'running');
  await sandbox.remove();
});

test('a record that is torn neither keeps the engine from starting nor costs the disk', async () => {
  const sandbox = await startSandbox(engine, 'container');
  const intact = await startSandbox(engine, 'container');
  const disk = join(engine.folder, 'rootfs/disks', `${sandbox.handle}.img`);
  await engine.kill();
  const folder = join(engine.folder, 'sandboxes');
  for (const handle of await readdir(folder)) {
    const path = join(folder, handle, 'record.json');
    if (readRecord(path).id === sandbox.id) writeFileSync(path, '{"handle":');
  }
  await engine.launch();
  assert.deepEqual(await states(), { [intact.id]: 'running' });
  assert.equal((await intact.sh('echo here')).stdout, 'here\n');
  assert.ok(existsSync(disk), 'what is on it can be rescued');
  await intact.remove();
});

test('a second engine on the same data folder fails with the reason', async () => {
  assert.match(await engine.launchAnother(), /already running/);
  assert.ok((await engine.client.capabilities()).version);
});
