import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError } from '@svc/contract';
import { pino } from 'pino';
import { HostSpace } from '../../packages/engine/src/space/host-space.ts';
import { startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { SmallDisk } from './small-disk.ts';
import { BUSYBOX, TestEngine } from './start-engine.ts';

const MIB = 2 ** 20;
const DISK_MIB = 384;
const MOUNTS = [{ type: 'named', name: 'data', guest: '/data' }] as const;

/** Writes for as long as it may, more than a grant at a time but in small pieces (gVisor takes one whole or not at all), and tells what is there afterwards. */
const FILL = (folder: string) => `
  refused=0
  while [ $refused -lt 40 ]; do
    n=$((n+1))
    dd if=/dev/urandom of=${folder}/fill$n bs=64k count=256 2>&1 || { refused=$((refused+1)); sleep 0.3; }
  done
  sync; sha256sum ${folder}/fill*`;

describe('a host whose disk fills up', { concurrency: false }, () => {
  let disk: SmallDisk;
  let engine: TestEngine;
  let container: TestSandbox;
  let gvisor: TestSandbox;
  /** Takes what is to become free. */
  let large: TestSandbox;
  const sums = new Map<TestSandbox, string>();

  before(async () => {
    disk = new SmallDisk(DISK_MIB);
    engine = await TestEngine.start({ parent: disk.folder });
    await engine.client.volumes.createVolume('data', 512);
    container = await startSandbox(engine, 'container', { mounts: [...MOUNTS] });
    gvisor = await startSandbox(engine, 'gvisor');
    large = await startSandbox(engine, 'container');
    await large.sh('dd if=/dev/urandom of=/large bs=1M count=64 && sync');
  });
  after(async () => {
    await engine.destroy();
    disk[Symbol.dispose]();
  });

  const isShort = async () => (await engine.client.space()).isShort;
  const refused = (error: unknown) => PlatformError.is(error, 'insufficient_storage');

  test('sandboxes of both classes that write all they can get ENOSPC, and the reserve is left', async () => {
    const pid = engine.pid;
    const wrote = await Promise.all([container.sh(`${FILL('')}; ${FILL('/data')}`), gvisor.sh(FILL(''))]);
    for (const [index, { stdout }] of wrote.entries()) {
      assert.match(stdout, /No space left on device/);
      sums.set(index === 0 ? container : gvisor, stdout.match(/^[0-9a-f]{64} .*$/gm)?.join('\n') ?? '');
    }
    await waitUntil(isShort, { what: 'the engine sees that the host is short of space' });
    const { freeBytes, reserveBytes, promisedBytes } = await engine.client.space();
    assert.ok(freeBytes > reserveBytes * 0.9, `${freeBytes} of ${reserveBytes} are left`);
    assert.ok(promisedBytes > freeBytes, 'more is promised than there is');
    assert.equal(engine.pid, pid);
  });

  test('new work is refused then, with the space that each organization uses', async () => {
    await assert.rejects(startSandbox(engine, 'container'), refused);
    const upload = engine.client.volumes.writeVolumeFile('data', 'new', Readable.from([Buffer.from('x')]));
    await assert.rejects(upload, refused);
    await assert.rejects(engine.client.volumes.createVolume('second', 16), refused);
    await assert.rejects(
      engine.client.images.importImage({ path: disk.folder, reference: 'svc/new' }),
      refused,
    );
    const users = await engine.client.spaceUsers();
    const own = users.find(({ kind, id }) => kind === 'sandbox' && id === container.id);
    assert.ok((own?.bytes ?? 0) > 10 * MIB, JSON.stringify(users));
  });

  test('a disk without a free byte stops neither reading nor stopping nor removing', async () => {
    disk.fill();
    assert.match((await container.sh('cat /etc/passwd; echo read')).stdout, /read/);
    assert.equal((await engine.client.stopSandbox(gvisor.id)).state, 'stopped');
    await assert.rejects(engine.client.startSandbox(gvisor.id), refused);
    assert.equal((await engine.client.getSandbox(gvisor.id)).state, 'stopped');
    await waitUntil(async () => (await engine.client.space()).ballastBytes < DISK_MIB * MIB * 0.02, {
      what: 'some of the ballast is given back',
    });
    const log = engine.client.logs(gvisor.id, { sources: ['system'] });
    assert.ok((await Array.fromAsync(log)).length > 0);
  });

  test('an engine that is killed then starts again', async () => {
    await engine.restart();
    assert.equal((await engine.client.getSandbox(container.id)).state, 'running');
    assert.ok(await isShort());
  });

  test('with space everything works again, and written files are complete', async () => {
    await large.remove();
    disk.empty();
    await waitUntil(async () => !(await isShort()), { what: 'the engine sees that there is room' });
    await engine.client.stopSandbox(container.id);
    // At once: nothing is left read-only.
    await engine.client.volumes
      .writeVolumeFile('data', 'new', Readable.from([Buffer.from('x')]))
      .catch(async (error: unknown) => {
        // Full of what the sandbox wrote: then it is the volume that says so.
        if (!PlatformError.is(error, 'disk_full')) throw error;
      });
    for (const sandbox of [container, gvisor]) {
      await engine.client.startSandbox(sandbox.id);
      await sandbox.put('/tmp/sums', Buffer.from(`${sums.get(sandbox)}\n`), 0o644);
      const { stdout, code } = await sandbox.sh('sha256sum -c /tmp/sums 2>&1');
      assert.equal(code, 0, stdout);
      assert.match(stdout, /fill1: OK/);
    }
  });

  test('space of removed files goes back to the host and to other sandboxes', async () => {
    const before = disk.freeBytes;
    await container.sh('rm /fill*; sync');
    await waitUntil(() => disk.freeBytes > before + 10 * MIB, { what: 'the host has the space' });
    await waitUntil(async () => !(await isShort()));
    // It comes back bit by bit, and is shared anew at every look.
    const write = 'dd if=/dev/zero of=/more bs=1M count=8 2>&1 && sync && echo written';
    await waitUntil(async () => /written/.test((await gvisor.sh(write)).stdout), {
      what: 'another sandbox may have it',
    });
    await (await startSandbox(engine, 'container')).remove();
    assert.equal(readFileSync(engine.logFile, 'utf8').includes('"level":60'), false);
    assert.ok(
      (await engine.client.images.listImages()).some(({ references }) => references.join().includes(BUSYBOX)),
    );
  });
});

test('a program that fills the disk does not get all of the ballast', async () => {
  using disk = new SmallDisk(64);
  const space = new HostSpace({ folder: disk.folder, logger: pino({ level: 'silent' }) });
  space.start();
  try {
    await waitUntil(() => space.view().ballastBytes > 0, { what: 'the ballast is taken' });
    const wholeBytes = space.view().ballastBytes;
    const endsAt = performance.now() + 1500;
    const goOn = () => {
      disk.fill();
      return performance.now() > endsAt;
    };
    await waitUntil(goOn, { what: 'it gives up' });
    assert.ok(space.view().ballastBytes > 0, 'some is left');
    await waitUntil(() => disk.freeBytes > wholeBytes / 16, { what: 'a piece is given back' });
  } finally {
    space.stop();
  }
});
