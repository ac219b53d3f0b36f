import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { inspect, promisify } from 'node:util';
import type { Isolation } from '@svc/contract/orchestrator';
import { waitUntil } from '@svc/contract/testing';
import { devicesByImage } from '../../packages/engine/src/space/disk-limit.ts';
import { childrenOf, commandOf } from './process-tree.ts';
import { CLASSES, specOf, startSandbox, TestSandbox } from './sandbox-fixture.ts';
import { BUSYBOX, TestEngine } from './start-engine.ts';

/** Small disks are read in no time. */
const SMALL = { resources: { vcpus: 1, memory_mib: 128, disk_size_mib: 64 } };

/** The program of docs/operating/disk.md that tells the digest of a disk. */
const DOCUMENT = readFileSync(new URL('../../docs/operating/disk.md', import.meta.url), 'utf8');
const DIGEST = /```python\n(?<program>.*?)```/s.exec(DOCUMENT)?.groups?.['program'] ?? '';

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

/** What snapshots and disks of sandboxes are on the host. */
function filesOf(kind: 'snapshots' | 'rootfs/disks'): readonly string[] {
  const names = readdirSync(join(engine.folder, kind)).toSorted();
  // Made for those who come next.
  return names.filter((name) => !name.startsWith('ready'));
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

    test('a running sandbox is copied with all that was written, and runs on with its connections', async () => {
      const origin = await startSandbox(engine, isolation, SMALL);
      const channel = await origin.connect();
      const terminal = await channel.exec({ cmd: '/bin/cat', tty: true });
      let screen = '';
      const reading = (async () => {
        for await (const chunk of terminal.stdout) screen += Buffer.from(chunk).toString();
      })();
      const type = async (typed: string) => {
        await terminal.writeStdin(Buffer.from(`${typed}\n`));
        await waitUntil(() => screen.split(typed).length > 2, { what: `${typed}, but: ${screen}` });
      };
      await type('before');
      const write = [
        'echo then > /root/file; seq 1 5000 >> /root/numbers; mkdir /root/d; mv /root/file /root/d/; rm /etc/passwd',
        // One that is open, and can only be written to.
        '(exec 3> /root/held; chmod 0222 /root/held; echo held >&3; sleep 1000) &',
        '(while :; do date >> /tick; sleep 0.1; done) &',
        'until [ -s /root/held ]; do sleep 0.01; done',
      ];
      assert.equal((await origin.sh(write.join('\n'))).code, 0);
      const [first, second] = await Promise.all(
        ['one', 'two'].map((name) =>
          engine.client.createSnapshot({ id: `${isolation}-${name}`, sandboxId: origin.id }),
        ),
      );
      await type('after');
      const ticks = async () => Number((await origin.sh('wc -c < /tick')).stdout);
      const before = await ticks();
      await waitUntil(async () => (await ticks()) > before, { what: 'what wrote before writes on' });
      assert.equal((await engine.client.getSandbox(origin.id)).state, 'running');
      for (const snapshot of [first, second]) {
        const copy = await startSandbox(engine, isolation, {}, { snapshot: snapshot?.id ?? '' });
        const read =
          'cat /root/d/file /root/held; tail -n 1 /root/numbers; wc -l < /root/numbers; ls /etc/passwd';
        assert.equal((await copy.sh(read)).stdout, 'then\nheld\n5000\n5000\n');
        await copy.remove();
        await engine.client.removeSnapshot(snapshot?.id ?? '');
      }
      await terminal.writeStdin(Buffer.from('\u0004'));
      await reading;
      channel.close();
      await origin.remove();
    });
  });
}

test('a snapshot has an id, and a digest of its content', async () => {
  const sandbox = await startSandbox(engine, 'container', SMALL);
  const request = { id: 'org/two', sandboxId: sandbox.id };
  await assert.rejects(engine.client.createSnapshot({ id: '../x', sandboxId: sandbox.id }), {
    code: 'invalid_request',
  });
  await assert.rejects(engine.client.createSnapshot({ id: 'x', sandboxId: 'missing' }), {
    code: 'sandbox_not_found',
  });
  await engine.client.stopSandbox(sandbox.id);
  const snapshot = await engine.client.createSnapshot(request);
  assert.deepEqual(await engine.client.getSnapshot('org/two'), snapshot);
  assert.deepEqual(await engine.client.listSnapshots(), [snapshot]);
  await assert.rejects(engine.client.createSnapshot(request), { code: 'name_already_exists' });
  const [folder = ''] = filesOf('snapshots');
  const disk = join(engine.folder, 'snapshots', folder, 'disk.img');
  const { stdout } = await promisify(execFile)('python3', ['-c', DIGEST, disk]);
  assert.equal(snapshot.digest, `sha256:${stdout.trim()}`);
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
  const fill = 'cat /root/file; df -k / >&2; dd if=/dev/zero of=/big bs=1M count=200 && stat -c %s /big';
  const { stdout, ...ended } = await larger.sh(fill);
  assert.equal(stdout, `kept\n${200 * 2 ** 20}\n`, inspect({ stdout, ...ended }));
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
  for (const { sandboxId } of await Promise.all(snapshots)) assert.equal(sandboxId, origin.id);
  assert.equal((await starting).state, 'running');
  assert.equal((await origin.sh('cat /root/file')).stdout, 'before\n');
  await origin.remove();
  for (const { id } of await engine.client.listSnapshots()) await engine.client.removeSnapshot(id);
});

test('a sandbox that is stopped and removed while it is copied gives whole copies, or none', async () => {
  const origin = await startSandbox(engine, 'container', SMALL);
  await origin.sh('seq 1 5000 > /root/numbers; (while :; do date >> /tick; sleep 0.1; done) &');
  const take = (ids: readonly string[]) =>
    ids.map((id) => engine.client.createSnapshot({ id, sandboxId: origin.id }));
  const made = take(['live-1', 'live-2']);
  const stopping = engine.client.stopSandbox(origin.id);
  made.push(...take(['cold-1', 'cold-2']));
  await Promise.all(made);
  assert.equal((await stopping).state, 'stopped');
  const late = take(['late-1', 'late-2', 'late-3']);
  await origin.remove();
  for (const outcome of await Promise.allSettled(late)) {
    if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'sandbox_not_found');
  }
  for (const { id } of await engine.client.listSnapshots()) {
    const copy = await startSandbox(engine, 'container', {}, { snapshot: id });
    assert.equal((await copy.sh('wc -l < /root/numbers')).stdout, '5000\n', id);
    await copy.remove();
    await engine.client.removeSnapshot(id);
  }
});

test('kill -9 of the engine and its helper while a disk stands still: the sandbox goes on with the next engine', async () => {
  const origin = await startSandbox(engine, 'container');
  assert.equal((await origin.sh('dd if=/dev/urandom of=/big bs=1M count=200')).code, 0);
  await origin.sh('(while :; do date >> /tick; sleep 0.1; done) &');
  const isCopying = () => filesOf('snapshots').some((name) => inSnapshot(name).includes('disk.img.new'));
  for (let attempt = 1; ; attempt++) {
    assert.ok(attempt <= 20, 'every copy was made before the helpers could be stopped');
    let isOver = false;
    const making = Promise.allSettled([
      engine.client.createSnapshot({ id: 'lost', sandboxId: origin.id }).finally(() => (isOver = true)),
    ]);
    await waitUntil(() => isOver || isCopying(), { what: 'the copy begins' });
    const helpers = helpersOf(engine.pid);
    for (const pid of helpers) process.kill(pid, 'SIGSTOP');
    const isCaught = isCopying();
    if (isCaught) await engine.kill();
    for (const pid of helpers) process.kill(pid, isCaught ? 'SIGKILL' : 'SIGCONT');
    await making;
    if (isCaught) break;
    await engine.client.removeSnapshot('lost');
  }
  await engine.launch();
  assert.deepEqual(filesOf('snapshots'), []);
  const ticks = async () => Number((await origin.sh('wc -c < /tick')).stdout);
  const before = await ticks();
  await waitUntil(async () => (await ticks()) > before, { what: 'what wrote before writes on' });
  await engine.client.createSnapshot({ id: 'whole', sandboxId: origin.id });
  await engine.client.removeSnapshot('whole');
  await origin.remove();
});

test('a disk that a backup left frozen when it was killed goes on with the engine that runs', async (t) => {
  const others = new Set(filesOf('rootfs/disks'));
  const origin = await startSandbox(engine, 'container', SMALL);
  const disk = `rootfs/disks/${filesOf('rootfs/disks').find((name) => !others.has(name))}`;
  const device = `/dev/${devicesByImage().get(join(engine.folder, disk))}`;
  const second = await mkdtemp(join(tmpdir(), 'svc-frozen-'));
  const freeze = async (how: string) => {
    const script = 'mount -t ext4 "$1" "$2" && { fsfreeze "$3" "$2"; status=$?; umount "$2"; exit $status; }';
    await promisify(execFile)('sh', ['-c', script, 'sh', device, second, how]);
  };
  t.after(async () => {
    // Only needed when the engine has not done it.
    await freeze('--unfreeze').catch(() => undefined);
    await rm(second, { recursive: true });
  });
  await mkdir(join(engine.folder, 'frozen'), { recursive: true });
  await writeFile(join(engine.folder, 'frozen', encodeURIComponent(disk)), '');
  await freeze('--freeze');
  await waitUntil(() => readdirSync(join(engine.folder, 'frozen')).length === 0, { what: 'it is thawed' });
  assert.equal((await origin.sh('echo on > /late')).code, 0);
  await origin.remove();
});

test('a cancelled create and kill -9 of the engine leave no files of a snapshot', async () => {
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
    // The snapshot exists whole or not at all; whole if its caller got an answer.
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

/** The processes by which an engine makes kernel calls. */
function helpersOf(pid: number): readonly number[] {
  return childrenOf(pid).filter((child) => commandOf(child).at(-1)?.endsWith('svc-host') === true);
}

function inSnapshot(name: string): readonly string[] {
  try {
    return readdirSync(join(engine.folder, 'snapshots', name));
  } catch {
    // Removed since it was listed.
    return [];
  }
}
