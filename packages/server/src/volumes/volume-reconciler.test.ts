import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError } from '@svc/contract';
import { pino } from 'pino';
import { FakeVolumeStore } from '../testing/fake-volume-store.ts';
import { openStore } from '../store/open-store.ts';
import { ensureOrganization } from '../store/organizations.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import { listUsage } from '../store/volume-usage.ts';
import { addVolume, findVolume, updateVolume } from '../store/volumes.ts';
import { makeFolder } from '../testing/test-server.ts';
import { ensureMade } from './make-volume.ts';
import { VolumeReconciler } from './volume-reconciler.ts';

const ALWAYS = { from: '0000', to: '9999' };

async function prepare(t: TestContext, sampleMs = 20) {
  const database = await openStore(sqliteDialect(join(await makeFolder(t), 'store.db')));
  const organizationId = await ensureOrganization(database, 'acme');
  const volumeStore = new FakeVolumeStore();
  const maker = { database, volumeStore, defaultVolumeGib: 2 };
  const running: { stop: AbortController; ended: Promise<void> }[] = [];
  const stopAll = async () => {
    for (const { stop } of running) stop.abort();
    await Promise.all(running.map(({ ended }) => ended));
  };
  t.after(async () => {
    await stopAll();
    await database.destroy();
  });
  return {
    database,
    volumeStore,
    maker,
    stopAll,
    add: (name: string, capacityGib: number | null = null) =>
      addVolume(database, { organizationId, name, capacityGib, labels: {} }),
    find: (id: string) => findVolume(database, organizationId, id),
    run: () => {
      const stop = new AbortController();
      const reconciler = new VolumeReconciler({ ...maker, sampleMs, logger: pino({ level: 'silent' }) });
      running.push({ stop, ended: reconciler.run(stop.signal) });
      return reconciler;
    },
  };
}

test('volumes that were recorded and not made are made, with the default where they have no cap', async (t) => {
  const { volumeStore, add, find, run } = await prepare(t);
  const [capped, uncapped] = [await add('capped', 5), await add('uncapped')];
  volumeStore.goAway();
  run();
  volumeStore.comeBack();
  await waitUntil(
    async () => (await find(uncapped.id))?.isMade === true && (await find(capped.id))?.isMade === true,
  );
  const made = new Map((await volumeStore.listVolumes()).map(({ id, capacityMib }) => [id, capacityMib]));
  assert.deepEqual([made.get(capped.id), made.get(uncapped.id)], [5 * 1024, 2 * 1024]);
});

test('deleted volumes are removed; one that is still in use waits and keeps no other waiting', async (t) => {
  const { database, volumeStore, maker, add, find, run } = await prepare(t);
  const [held, free] = [await add('held'), await add('free')];
  for (const volume of [held, free]) {
    await ensureMade(maker, volume);
    await updateVolume(database, volume.id, { status: 'deleting' });
  }
  volumeStore.hold(held.id, true);
  const reconciler = run();
  await waitUntil(async () => (await find(free.id)) === undefined);
  assert.equal((await find(held.id))?.status, 'deleting');
  volumeStore.hold(held.id, false);
  reconciler.wake();
  await waitUntil(async () => (await find(held.id)) === undefined);
  assert.deepEqual(await volumeStore.listVolumes(), []);
});

test('a capacity that differs from the record is brought to it, except where the record has none', async (t) => {
  const { volumeStore, maker, add, run } = await prepare(t);
  const [capped, uncapped] = [await add('capped', 5), await add('uncapped')];
  for (const volume of [capped, uncapped]) {
    await ensureMade(maker, volume);
    await volumeStore.resizeVolume(volume.id, 9 * 1024);
  }
  run();
  const capacities = async () =>
    new Map((await volumeStore.listVolumes()).map(({ id, capacityMib }) => [id, capacityMib]));
  await waitUntil(async () => (await capacities()).get(capped.id) === 5 * 1024);
  assert.equal((await capacities()).get(uncapped.id), 9 * 1024);
});

test('a volume that is deleted while it is made leaves nothing in the engine', async (t) => {
  const { database, volumeStore, maker, add } = await prepare(t);
  const volume = await add('data');
  await updateVolume(database, volume.id, { status: 'deleting' });
  await assert.rejects(ensureMade(maker, volume), (error) => PlatformError.is(error, 'volume_not_found'));
  assert.deepEqual(await volumeStore.listVolumes(), []);
});

test('several servers, one after another and at once, measure every moment once', async (t) => {
  const { database, volumeStore, maker, add, run, stopAll } = await prepare(t);
  const volume = await add('data');
  await ensureMade(maker, volume);
  const intervals = () => listUsage(database, volume.id, ALWAYS);
  const reaches = async (usedBytes: number) =>
    await waitUntil(async () => (await intervals()).at(-1)?.usedBytes === usedBytes);
  run();
  run();
  await volumeStore.writeVolumeFile(volume.id, 'a', bytes(1000));
  await reaches(1000);
  await stopAll();
  run();
  const { endedAt } = (await intervals()).at(-1) ?? { endedAt: '' };
  await waitUntil(async () => ((await intervals()).at(-1)?.endedAt ?? '') > endedAt);
  await volumeStore.writeVolumeFile(volume.id, 'b', bytes(500));
  await reaches(1500);
  await stopAll();
  const found = await intervals();
  assert.deepEqual(
    found.map(({ usedBytes }) => usedBytes),
    [0, 1000, 1500],
  );
  for (const [index, { startedAt }] of found.entries()) {
    assert.equal(startedAt, index === 0 ? volume.createdAt : found[index - 1]?.endedAt);
  }
});

async function* bytes(length: number): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.alloc(length));
}
