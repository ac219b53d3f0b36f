import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
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
  const { sampler, sandbox } = await makeSampler(t, () => 1);
  const sandboxes = [sandbox('broken'), sandbox('fine')];
  sampler.sampleShare(sandboxes, 1);
  assert.deepEqual(
    sampler.read(sandboxes).map(({ id }) => id),
    ['fine'],
  );
});

test('a sandbox that used no processor time since is not looked at as a whole, and one that did is', async (t) => {
  let cpuMicroseconds = 5;
  const { sampler, sandbox, looks } = await makeSampler(t, () => cpuMicroseconds);
  const sandboxes = [sandbox('fine')];
  for (let round = 0; round < 3; round++) sampler.sampleShare(sandboxes, 1);
  assert.equal(looks(), 1);
  assert.equal(sampler.read(sandboxes)[0]?.memoryBytes, 1);
  cpuMicroseconds = 6;
  sampler.sampleShare(sandboxes, 1);
  assert.equal(looks(), 2);
});

async function makeSampler(t: TestContext, cpuMicroseconds: () => number) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sampler-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const network = new FakeNetwork();
  await network.recover([]);
  const slot = await network.acquire('loopback', AbortSignal.timeout(10_000));
  let count = 0;
  const sampler = new Sampler({
    cgroups: {
      usage: () => {
        count += 1;
        return { cpuMicroseconds: cpuMicroseconds(), memoryBytes: 1, processes: 1 };
      },
      cpuMicroseconds,
      oomKills: () => 0,
      forkRefusals: () => 0,
      limitSockets: () => {},
      processIds: () => [],
    },
    rootfs: new BrokenDisk(folder),
    network,
    guestFolders: new GuestFolders(folder),
    logger: pino({ level: 'silent' }),
  });
  const sandbox = (handle: string, resources = {}) =>
    ({
      record: { handle, id: handle, state: 'running', spec: { resources } },
      run: { slot },
    }) as unknown as Sandbox;
  return { sampler, sandbox, looks: () => count };
}
