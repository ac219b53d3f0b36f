import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract';
import type { Database } from './database.ts';
import { ensureOrganization } from './organizations.ts';
import { closeUsage, latestSampleTimes, listUsage, recordUsage } from './volume-usage.ts';
import {
  addVolume,
  ensureHostVolume,
  findVolume,
  findVolumeByName,
  listUsers,
  listVolumes,
  listVolumesByWork,
  markGone,
  markMade,
  updateVolume,
} from './volumes.ts';

const ALWAYS = { from: '0000', to: '9999' };

/** What every database must do the same with volumes. */
export function volumesSuite(name: string, empty: (t: TestContext) => Promise<Database>): void {
  describe(`volumes on ${name}`, () => {
    const prepare = async (t: TestContext) => {
      const db = await empty(t);
      const organizationId = await ensureOrganization(db, 'acme');
      const add = (volumeName: string, capacityGib: number | null = null) =>
        addVolume(db, { organizationId, name: volumeName, capacityGib, labels: { team: 'a' } });
      return { db, organizationId, add };
    };

    test('a volume is found by id and name, in its organization alone', async (t) => {
      const { db, organizationId, add } = await prepare(t);
      const added = await add('data', 5);
      assert.partialDeepStrictEqual(added, { kind: 'managed', status: 'active', version: 1, isMade: false });
      assert.deepEqual(await findVolume(db, organizationId, added.id), added);
      assert.deepEqual(await findVolume(db, organizationId, added.id.toUpperCase()), added);
      assert.deepEqual(await findVolumeByName(db, organizationId, 'data'), added);
      const other = await ensureOrganization(db, 'other');
      assert.equal(await findVolume(db, other, added.id), undefined);
      assert.equal(await findVolumeByName(db, other, 'data'), undefined);
      assert.deepEqual(await listVolumes(db, other), []);
    });

    test('of many volumes of one name at once one is added, and its name is free when it is gone', async (t) => {
      const { db, organizationId, add } = await prepare(t);
      const ends = await Promise.allSettled(Array.from({ length: 10 }, () => add('data')));
      const refused = ends.filter((end) => end.status === 'rejected');
      assert.equal(refused.length, 9);
      assert.ok(refused.every(({ reason }) => PlatformError.is(reason, 'name_already_exists')));
      const [volume] = await listVolumes(db, organizationId);
      assert.ok(volume);
      await updateVolume(db, volume.id, { status: 'deleting' });
      await assert.rejects(add('data'), PlatformError);
      assert.equal(await findVolumeByName(db, organizationId, 'data'), undefined);
      assert.equal((await findVolume(db, organizationId, volume.id))?.status, 'deleting');
      await markGone(db, volume.id);
      assert.equal(await findVolume(db, organizationId, volume.id), undefined);
      assert.notEqual((await add('data')).id, volume.id);
    });

    test('an organization has one host volume, however many ask at once', async (t) => {
      const { db, organizationId } = await prepare(t);
      const volumes = await Promise.all(
        Array.from({ length: 10 }, () => ensureHostVolume(db, organizationId)),
      );
      assert.equal(new Set(volumes.map(({ id }) => id)).size, 1);
      assert.partialDeepStrictEqual(volumes[0], { kind: 'host', name: null, capacityGib: null });
      assert.equal((await listVolumes(db, organizationId)).length, 1);
    });

    test('a change raises the version and leaves the rest', async (t) => {
      const { db, add } = await prepare(t);
      const { id } = await add('data', 5);
      const capped = await updateVolume(db, id, { capacityGib: 7 });
      assert.partialDeepStrictEqual(capped, { capacityGib: 7, labels: { team: 'a' }, version: 2 });
      const uncapped = await updateVolume(db, id, { capacityGib: null, labels: {} });
      assert.partialDeepStrictEqual(uncapped, { capacityGib: null, version: 3 });
      assert.deepEqual(uncapped.labels, {});
    });

    test('work for the engine is listed by kind, and a volume that is being deleted is no longer made', async (t) => {
      const { db, add } = await prepare(t);
      const [made, unmade, deleted] = [await add('made'), await add('unmade'), await add('deleted')];
      assert.equal(await markMade(db, made.id), true);
      await updateVolume(db, deleted.id, { status: 'deleting' });
      assert.equal(await markMade(db, deleted.id), false);
      const ids = async (work: Parameters<typeof listVolumesByWork>[1]) =>
        (await listVolumesByWork(db, work)).map(({ id }) => id);
      assert.deepEqual(await ids('kept'), [made.id]);
      assert.deepEqual(await ids('to make'), [unmade.id]);
      assert.deepEqual(await ids('to remove'), [deleted.id]);
    });

    test('a sandbox that is not removed uses what it mounts', async (t) => {
      const { db, organizationId, add } = await prepare(t);
      const { id } = await add('data');
      await addSandbox(db, organizationId, 'one', id);
      assert.deepEqual(await listUsers(db, id), ['one']);
      await db.updateTable('sandboxes').set({ removed_at: new Date().toISOString() }).execute();
      assert.deepEqual(await listUsers(db, id), []);
    });

    usageCases(prepare);
  });
}

function usageCases(
  prepare: (t: TestContext) => Promise<{
    db: Database;
    organizationId: string;
    add: (name: string) => Promise<{ id: string; createdAt: string }>;
  }>,
): void {
  const measured = async (t: TestContext) => {
    const { db, organizationId, add } = await prepare(t);
    const { id: volumeId, createdAt } = await add('data');
    const at = (seconds: number) => new Date(Date.parse(createdAt) + seconds * 1000).toISOString();
    const sample = async (seconds: number, usedBytes: number) =>
      await db
        .transaction()
        .execute((transaction) =>
          recordUsage(transaction, { volumeId, organizationId, at: at(seconds), usedBytes }),
        );
    const intervals = async () => await listUsage(db, volumeId, ALWAYS);
    return { db, volumeId, at, sample, intervals };
  };

  test('intervals follow each other from the creation on, and grow while nothing changes', async (t) => {
    const { at, sample, intervals, db, volumeId } = await measured(t);
    await sample(60, 0);
    await sample(120, 2 ** 40);
    await sample(180, 2 ** 40);
    await sample(100_000, 5);
    assert.deepEqual(await intervals(), [
      { startedAt: at(0), endedAt: at(120), usedBytes: 0 },
      { startedAt: at(120), endedAt: at(100_000), usedBytes: 2 ** 40 },
      { startedAt: at(100_000), endedAt: at(100_000), usedBytes: 5 },
    ]);
    assert.equal((await latestSampleTimes(db)).get(volumeId), at(100_000));
    await closeUsage(db, volumeId, at(100_060));
    assert.equal((await intervals()).at(-1)?.endedAt, at(100_060));
  });

  test('samples of several servers, late ones and a clock that was set back count no second twice', async (t) => {
    const { at, sample, intervals } = await measured(t);
    await Promise.all([sample(60, 10), sample(60, 10), sample(59, 10), sample(61, 10), sample(30, 99)]);
    await sample(120, 10);
    await sample(90, 77);
    const found = await intervals();
    for (const [index, { startedAt, endedAt }] of found.entries()) {
      assert.ok(startedAt <= endedAt);
      assert.equal(startedAt, index === 0 ? at(0) : found[index - 1]?.endedAt);
    }
    assert.equal(found.at(-1)?.endedAt, at(120));
    assert.ok(!found.some(({ usedBytes }) => usedBytes === 77));
  });
}

async function addSandbox(
  db: Database,
  organizationId: string,
  name: string,
  volumeId: string,
): Promise<void> {
  await db
    .insertInto('sandboxes')
    .values({
      id: name,
      organization_id: organizationId,
      name,
      slug: name,
      spec: '{}',
      ports: '[]',
      desired: 'stopped',
      observed: 'created',
      failure_message: null,
      created_at: new Date().toISOString(),
      started_at: null,
      ended_at: null,
      removed_at: null,
    })
    .execute();
  await db
    .insertInto('sandbox_volumes')
    .values({ sandbox_id: name, volume_id: volumeId, mount_path: '/data', is_read_only: 0 })
    .execute();
}
