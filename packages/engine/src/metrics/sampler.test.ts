import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pino } from 'pino';
import { GuestFolders } from '../guest/guest-folders.ts';
import { FakeNetwork } from '../testing/fake-network.ts';
import { FakeRootfs } from '../testing/fake-rootfs.ts';
import type { Sandbox } from '../sandboxes/sandbox.ts';
import { Sampler } from './sampler.ts';

class BrokenDisk extends FakeRootfs {
  override usage(handle: string): ReturnType<FakeRootfs['usage']> {
    if (handle === 'broken') throw new Error('EIO');
    return { usedBytes: 1, totalBytes: 2 };
  }
}

test('a sandbox that cannot be measured costs the others nothing', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sampler-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const network = new FakeNetwork();
  await network.recover([]);
  const slot = await network.acquire('loopback', AbortSignal.timeout(10_000));
  const usage = { cpuMicroseconds: 1, memoryBytes: 1, memoryLimitBytes: null, processes: 1, oomKills: 0 };
  const sampler = new Sampler({
    cgroups: {
      usage: () => usage,
      oomKills: () => 0,
      forkRefusals: () => 0,
      limitSockets: () => {},
      processIds: () => [],
      quickMoves: () => ({ [Symbol.dispose]: () => {} }),
    },
    rootfs: new BrokenDisk(folder),
    network,
    guestFolders: new GuestFolders(folder),
    logger: pino({ level: 'silent' }),
  });
  const sandbox = (handle: string) =>
    ({ record: { handle, id: handle, state: 'running', spec: {} }, run: { slot } }) as unknown as Sandbox;
  const sandboxes = [sandbox('broken'), sandbox('fine')];
  sampler.sampleShare(sandboxes, 1);
  assert.deepEqual(
    sampler.read(sandboxes).map(({ id }) => id),
    ['fine'],
  );
});
