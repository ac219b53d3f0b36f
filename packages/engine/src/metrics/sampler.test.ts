import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
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
  sampler.sampleShare(() => sandboxes, 1);
  assert.deepEqual(
    sampler.read(sandboxes).map(({ id }) => id),
    ['fine'],
  );
});

test('a sandbox that used no processor time since is not looked at as a whole, and one that did is', async (t) => {
  let cpuMicroseconds = 5;
  const { sampler, sandbox, looks } = await makeSampler(t, () => cpuMicroseconds);
  const sandboxes = [sandbox('fine')];
  for (let round = 0; round < 3; round++) sampler.sampleShare(() => sandboxes, 1);
  assert.equal(looks(), 1);
  assert.equal(sampler.read(sandboxes)[0]?.memoryBytes, 1);
  cpuMicroseconds = 6;
  sampler.sampleShare(() => sandboxes, 1);
  assert.equal(looks(), 2);
});

test('where all together used none since the round before, not one of them is asked', async (t) => {
  const used = new Map([
    ['one', 1],
    ['two', 2],
    ['.', 3],
  ]);
  const asked: string[] = [];
  const { sampler, sandbox, looks } = await makeSampler(t, (handle) => {
    if (handle !== '.') asked.push(handle);
    return used.get(handle) ?? 0;
  });
  const sandboxes = [sandbox('one'), sandbox('two')];
  const round = () => {
    for (let share = 0; share < 4; share++) sampler.sampleShare(() => sandboxes, 1 / 4);
  };
  round();
  assert.equal(looks(), 2, 'each once in a round');
  asked.length = 0;
  round();
  assert.deepEqual(asked, []);
  used.set('one', 2).set('.', 4);
  round();
  assert.deepEqual([looks(), sampler.read(sandboxes)[0]?.cpuSeconds], [3, 2e-6]);
  sampler.sampleShare(() => sandboxes, 1 / 2);
  // After its own turn in this round.
  used.set('one', 3).set('.', 5);
  sampler.sampleShare(() => sandboxes, 1 / 2);
  round();
  assert.deepEqual([looks(), sampler.read(sandboxes)[0]?.cpuSeconds], [4, 3e-6]);
});

test('a sandbox of gVisor rests when there is nothing in it but what waits for its first caller', async (t) => {
  let cpuMicroseconds = 0;
  const { sampler, sandbox } = await makeSampler(t, () => (cpuMicroseconds += 1));
  const restedWith = async (counted: Record<string, number>, quietMs = 5000) => {
    let isResting = false;
    const link = { isConnected: true, peek: async () => ({ type: 'svc.counted', payload: counted }) };
    const run = { link, quietMs: () => quietMs, rest: () => (isResting = true) };
    const inGvisor = sandbox('fine', 'gvisor', run);
    // A new one each time: what was counted of the last is forgotten.
    sampler.sampleShare(() => [], 1);
    for (let round = 0; round < 2; round++) {
      sampler.sampleShare(() => [inGvisor], 1);
      await turn();
    }
    return isResting;
  };
  assert.equal(await restedWith({ processes: 1 }), true);
  assert.equal(await restedWith({ processes: 2 }), false);
  assert.equal(await restedWith({ processes: 2, spares: 1 }), true);
  assert.equal(await restedWith({ processes: 3, spares: 1 }), false);
  assert.equal(await restedWith({ processes: 1 }, 900), false, 'something was said to it');
});

async function makeSampler(t: TestContext, cpuMicroseconds: (handle: string) => number) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sampler-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const network = new FakeNetwork();
  await network.recover([]);
  const slot = await network.acquire('loopback', AbortSignal.timeout(10_000));
  let count = 0;
  const sampler = new Sampler({
    cgroups: {
      usage: (handle) => {
        count += 1;
        return { cpuMicroseconds: cpuMicroseconds(handle), memoryBytes: 1, processes: 1 };
      },
      cpuMicroseconds,
      oomKills: () => 0,
      forkRefusals: () => 0,
      limitSockets: () => {},
      processIds: () => [],
      parentProblem: () => undefined,
      hasOtherParents: () => false,
    },
    rootfs: new BrokenDisk(folder),
    network,
    guestFolders: new GuestFolders(folder),
    logger: pino({ level: 'silent' }),
  });
  const sandbox = (handle: string, isolation = 'container', run = {}) =>
    ({
      record: {
        handle,
        id: handle,
        isolation,
        state: 'running',
        spec: { resources: {}, runtime: { metrics_sample_interval_ms: 0 } },
      },
      run: { slot, ...run },
    }) as unknown as Sandbox;
  return { sampler, sandbox, looks: () => count };
}
