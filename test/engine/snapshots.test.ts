import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createReadStream, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Isolation } from '@svc/engine/client';
import { CLASSES, specOf, startSandbox, TestSandbox } from './sandbox-fixture.ts';
import { BUSYBOX, TestEngine } from './start-engine.ts';

/** Small disks are hashed in no time. */
const SMALL = { resources: { vcpus: 1, memory_mib: 128, disk_size_mib: 64 } };

let engine: TestEngine;
before(async () => {
  engine = await TestEngine.start();
});
after(async () => {
  await engine.destroy();
});

/** A stopped sandbox with a file in it. */
async function stoppedWith(isolation: Isolation, content: string, spec = SMALL): Promise<TestSandbox> {
  const sandbox = await startSandbox(engine, isolation, spec);
  assert.equal((await sandbox.sh(`echo ${content} > /root/file; rm /etc/passwd`)).code, 0);
  await engine.client.stopSandbox(sandbox.id);
  return sandbox;
}

/** What snapshots and disks are on the host. */
function filesOf(kind: 'snapshots' | 'rootfs/disks'): readonly string[] {
  return readdirSync(join(engine.folder, kind)).toSorted();
}

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('a sandbox made from a snapshot has the files of then, and a life of its own', async () => {
      const origin = await stoppedWith(isolation, 'then');
      const snapshot = await engine.client.createSnapshot({ id: `${isolation}-one`, sandboxId: origin.id });
      assert.equal(snapshot.image.id, origin.view.image.id);
      await engine.client.startSandbox(origin.id);
      assert.equal((await origin.sh('cat /root/file; echo later > /root/file')).stdout, 'then\n');

      const request = { snapshot: snapshot.id, isolation, start: true };
      const made = await engine.client.createSandbox({ ...request, spec: specOf() });
      const copy = new TestSandbox(engine, made);
      assert.equal(copy.view.spec.resources?.disk_size_mib, 64, 'as large as it was');
      assert.equal((await copy.sh('cat /root/file; ls /etc/passwd')).stdout, 'then\n');
      await copy.sh('echo own > /root/file');
      assert.equal((await origin.sh('cat /root/file')).stdout, 'later\n');

      await engine.client.removeSnapshot(snapshot.id);
      await engine.client.removeSnapshot(snapshot.id);
      await origin.remove();
      assert.deepEqual(filesOf('snapshots'), []);
      await engine.client.stopSandbox(copy.id);
      await engine.client.startSandbox(copy.id);
      assert.equal((await copy.sh('cat /root/file')).stdout, 'own\n');
      await copy.remove();
    });
  });
}

test('a snapshot is of a sandbox that does not run, and is told by its id', async () => {
  const sandbox = await startSandbox(engine, 'container', SMALL);
  const request = { id: 'org/two', sandboxId: sandbox.id };
  await assert.rejects(engine.client.createSnapshot(request), {
    code: 'invalid_state_transition',
    message: /is running; stop it/,
  });
  await assert.rejects(engine.client.createSnapshot({ id: '../x', sandboxId: sandbox.id }), {
    code: 'invalid_request',
  });
  await assert.rejects(engine.client.createSnapshot({ id: 'x', sandboxId: 'nobody' }), {
    code: 'sandbox_not_found',
  });
  await engine.client.stopSandbox(sandbox.id);
  const snapshot = await engine.client.createSnapshot(request);
  assert.deepEqual(await engine.client.getSnapshot('org/two'), snapshot);
  assert.deepEqual(await engine.client.listSnapshots(), [snapshot]);
  await assert.rejects(engine.client.createSnapshot(request), { code: 'name_already_exists' });
  const [folder = ''] = filesOf('snapshots');
  const hash = createHash('sha256');
  await pipeline(createReadStream(join(engine.folder, 'snapshots', folder, 'disk.img')), hash);
  assert.equal(snapshot.digest, `sha256:${hash.digest('hex')}`);
  assert.ok(snapshot.storedBytes < snapshot.sizeBytes / 4, 'holes stay holes');
  await engine.client.removeSnapshot('org/two');
  await assert.rejects(engine.client.getSnapshot('org/two'), { code: 'snapshot_not_found' });
  await assert.rejects(engine.client.createSandbox({ spec: specOf(), snapshot: 'org/two' }), {
    code: 'snapshot_not_found',
    details: { snapshot: 'org/two' },
  });
  await sandbox.remove();
});

test('a sandbox that was never started can be copied, and a copy can be copied', async () => {
  const created = await engine.client.createSandbox({ spec: specOf(SMALL), isolation: 'container' });
  await engine.client.createSnapshot({ id: 'first', sandboxId: created.id });
  const patches = [{ type: 'text', path: '/root/patched', content: 'by the patch' } as const];
  const spec = specOf({ patches });
  const second = await engine.client.createSandbox({
    spec,
    isolation: 'container',
    snapshot: 'first',
    start: true,
  });
  const sandbox = new TestSandbox(engine, second);
  assert.equal((await sandbox.sh('cat /root/patched')).stdout, 'by the patch');
  await engine.client.stopSandbox(second.id);
  const snapshot = await engine.client.createSnapshot({ id: 'second', sandboxId: second.id });
  assert.equal(snapshot.diskSizeMib, 64);
  const third = await engine.client.createSandbox({ spec: specOf(), snapshot: 'second', start: true });
  assert.equal((await new TestSandbox(engine, third).sh('cat /root/patched')).stdout, 'by the patch');
  for (const { id } of [created, second, third]) await engine.client.removeSandbox(id);
  for (const id of ['first', 'second']) await engine.client.removeSnapshot(id);
});

test('the disk of a copy can be larger than it was, and not smaller', async () => {
  const origin = await stoppedWith('container', 'kept');
  await engine.client.createSnapshot({ id: 'sized', sandboxId: origin.id });
  const resources = (disk_size_mib: number) => ({ resources: { ...SMALL.resources, disk_size_mib } });
  const smaller = { spec: specOf(resources(32)), snapshot: 'sized' };
  await assert.rejects(engine.client.createSandbox(smaller), {
    code: 'invalid_sandbox_config',
    message: /resources\.disk_size_mib/,
  });
  const larger = await startSandbox(engine, 'container', resources(256), { snapshot: 'sized' });
  const fill = 'cat /root/file; dd if=/dev/zero of=/big bs=1M count=200 2>/dev/null && stat -c %s /big';
  assert.equal((await larger.sh(fill)).stdout, `kept\n${200 * 2 ** 20}\n`);
  await larger.remove();
  await origin.remove();
  await engine.client.removeSnapshot('sized');
});

test('an image stays as long as a snapshot was made on it', async () => {
  const origin = await stoppedWith('container', 'x');
  await engine.client.createSnapshot({ id: 'pinned', sandboxId: origin.id });
  await origin.remove();
  await assert.rejects(engine.client.images.removeImage(BUSYBOX), { code: 'image_in_use' });
  assert.deepEqual((await engine.client.images.pruneImages()).images, []);
  const copy = await startSandbox(engine, 'container', {}, { snapshot: 'pinned' });
  assert.equal((await copy.sh('cat /root/file')).stdout, 'x\n');
  await copy.remove();
  await engine.client.removeSnapshot('pinned');
  await engine.client.images.removeImage(BUSYBOX);
  await engine.importBusybox();
});

test('a sandbox that is started while its disk is copied waits, and starts', async () => {
  const origin = await stoppedWith('container', 'before');
  const snapshots = [1, 2, 3].map((index) =>
    engine.client.createSnapshot({ id: `racing-${index}`, sandboxId: origin.id }),
  );
  const starting = engine.client.startSandbox(origin.id);
  const outcomes = await Promise.allSettled(snapshots);
  assert.equal((await starting).state, 'running');
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'invalid_state_transition');
    else assert.equal(outcome.value.sandboxId, origin.id);
  }
  assert.equal((await origin.sh('cat /root/file')).stdout, 'before\n');
  await origin.remove();
  for (const { id } of await engine.client.listSnapshots()) await engine.client.removeSnapshot(id);
});

test('a caller that gives up, and kill -9 of the engine, leave nothing of a snapshot', async () => {
  // The default size takes seconds to hash.
  const origin = await startSandbox(engine, 'container');
  assert.equal((await origin.sh('dd if=/dev/urandom of=/big bs=1M count=150')).code, 0);
  await engine.client.stopSandbox(origin.id);
  const begun = () => waitUntil(() => filesOf('snapshots').length === 1, { what: 'the copy begins' });
  await untilInterrupted(origin.id, begun, (abort) => abort.abort());
  await waitUntil(() => filesOf('snapshots').length === 0, { what: 'it is undone' });

  const isCopied = () => filesOf('snapshots').some((name) => inSnapshot(name).includes('disk.img'));
  for (const moment of [begun, () => waitUntil(isCopied, { what: 'the disk is copied' })]) {
    await untilInterrupted(origin.id, moment, () => engine.kill());
    for (let round = 0; round < 2; round++) {
      await engine.launch();
      assert.deepEqual(filesOf('snapshots'), []);
      assert.deepEqual(await engine.client.listSnapshots(), []);
      if (round === 0) await engine.kill();
    }
    await engine.client.startSandbox(origin.id);
    assert.equal((await origin.sh('stat -c %s /big')).stdout, `${150 * 2 ** 20}\n`);
    await engine.client.stopSandbox(origin.id);
  }

  const disks = filesOf('rootfs/disks');
  await engine.client.createSnapshot({ id: 'kept', sandboxId: origin.id });
  const half = Promise.allSettled([
    engine.client.createSandbox({ id: 'half', spec: specOf(), snapshot: 'kept' }),
  ]);
  await waitUntil(() => filesOf('rootfs/disks').length > disks.length, { what: 'the disk is being copied' });
  await engine.kill();
  const [{ status }] = await half;
  for (let round = 0; round < 2; round++) {
    await engine.launch();
    // Either nothing of it is there, or all of it; all of it when its caller was told so.
    const isThere = (await engine.client.listSandboxes()).some(({ id }) => id === 'half');
    if (status === 'fulfilled') assert.ok(isThere);
    assert.equal(filesOf('rootfs/disks').length, disks.length + (isThere ? 1 : 0));
    assert.equal((await engine.client.listSnapshots()).length, 1);
    if (round === 0) await engine.kill();
  }
  await engine.client.removeSandbox('half');
  await engine.client.removeSnapshot('kept');
  await origin.remove();
  assert.deepEqual(filesOf('snapshots'), []);
});

/** Interrupts a snapshot when `moment` has come. On a busy host that may be too late: then the next one is interrupted. */
async function untilInterrupted(
  sandboxId: string,
  moment: () => Promise<void>,
  interrupt: (abort: AbortController) => Promise<void> | void,
): Promise<void> {
  for (let attempt = 1; attempt <= 5; attempt++) {
    const abort = new AbortController();
    const making = Promise.allSettled([
      engine.client.createSnapshot({ id: 'lost', sandboxId }, abort.signal),
    ]);
    await moment();
    await interrupt(abort);
    const [{ status }] = await making;
    if (status === 'rejected') return;
    await engine.restart();
    await engine.client.removeSnapshot('lost');
  }
  assert.fail('every snapshot was made before it could be interrupted');
}

function inSnapshot(name: string): readonly string[] {
  try {
    return readdirSync(join(engine.folder, 'snapshots', name));
  } catch {
    // Removed since it was listed.
    return [];
  }
}
