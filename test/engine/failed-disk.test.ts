import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { PlatformError } from '@svc/contract';
import { examineHost } from '@svc/engine/doctor';
import { startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { SmallDisk } from './small-disk.ts';
import { TestEngine } from './start-engine.ts';

const WRITE_AND_SYNC = 'dd if=/dev/urandom of=$1 bs=64k count=16 conv=fsync 2>&1; echo fsync $?';

describe('an engine whose disk has become read-only', { concurrency: false }, () => {
  let disk: SmallDisk;
  let engine: TestEngine;
  let container: TestSandbox;
  before(async () => {
    disk = new SmallDisk(384);
    engine = await TestEngine.start({ parent: disk.folder });
    await engine.client.volumes.createVolume('data', 64);
    container = await startSandbox(engine, 'container', {
      mounts: [{ type: 'named', name: 'data', guest: '/data' }],
    });
    await container.sh('echo before > /before; echo before > /data/before; sync');
    disk.fail();
  });
  after(async () => {
    await engine.kill();
    disk.repair();
    await engine.destroy();
    disk[Symbol.dispose]();
  });

  test('changes fail as unavailable and name the disk', async () => {
    const { client } = engine;
    const changes: Readonly<Record<string, () => Promise<unknown>>> = {
      'create a volume': () => client.volumes.createVolume('second', 16),
      'write a file': () => client.volumes.writeVolumeFile('data', 'new', Readable.from([Buffer.from('x')])),
      'create a sandbox': () => startSandbox(engine, 'container'),
    };
    for (const [what, change] of Object.entries(changes)) {
      await assert.rejects(change(), (error) => {
        assert.ok(PlatformError.is(error, 'unavailable'), `${what}: ${String(error)}`);
        assert.match(error.message, /^The disk of the engine's data folder is read-only \(EROFS\)/);
        assert.deepEqual(error.details, { disk: 'engine_data_folder', errno: 'EROFS' });
        return true;
      });
    }
    assert.match((await client.space()).fault ?? '', /read-only/);
  });

  test('svc doctor says what to do', async () => {
    const { findings, canRunSandboxes } = await examineHost({ dataFolder: engine.folder, isThorough: false });
    const disk = findings.find(({ name }) => name === 'disk');
    assert.equal(disk?.status, 'missing');
    assert.match(disk.finding, /takes no writes: EROFS/);
    assert.match(disk.remedy ?? '', /fsck/);
    assert.equal(canRunSandboxes, false);
  });

  test('a guest reads, and an fsync of a container fails instead of promising what is not on the disk', async () => {
    for (const folder of ['', '/data']) {
      const { stdout } = await container.sh(`cat ${folder}/before; set -- ${folder}/new; ${WRITE_AND_SYNC}`);
      assert.match(stdout, /^before\n.*Input\/output error\nfsync 1\n$/s);
    }
    assert.doesNotMatch(readFileSync(engine.logFile, 'utf8'), /"level":60/);
  });

  test('with the disk repaired, what was synced to a volume is there, and a guest can write', async () => {
    await engine.kill();
    disk.repair();
    await engine.launch();
    assert.equal((await engine.client.space()).fault, null);
    await engine.client.stopSandbox(container.id);
    await engine.client.startSandbox(container.id);
    const { stdout } = await container.sh(`cat /data/before; set -- /new; ${WRITE_AND_SYNC}`);
    assert.match(stdout, /^before\n.*fsync 0\n$/s);
  });
});
