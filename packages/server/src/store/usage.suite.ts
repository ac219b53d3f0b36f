import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { SandboxSpec } from '@svc/contract';
import { readPoolUsage } from '../accounting/pool-usage.ts';
import { readSandboxUsage } from '../accounting/sandbox-usage.ts';
import { readSnapshotUsage, readVolumeUsage } from '../accounting/storage-usage.ts';
import type { TimeWindow } from '../accounting/time-window.ts';
import type { Database } from './database.ts';
import { ensureOrganization } from './organizations.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';
import { addRun, addSnapshot, addStretch, addVolume } from '../testing/stored-usage.ts';
import { listSandboxNames, readSnapshotBytes, readVolumeBytes, readVolumeRoomBytes } from './usage.ts';

const SPEC: SandboxSpec = { image: { type: 'oci', reference: 'x' } };
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** What every database must do the same when usage is asked for. */
export function usageSuite(name: string, empty: (t: TestContext) => Promise<Database>): void {
  describe(`usage on ${name}`, () => {
    const prepare = async (t: TestContext) => {
      const db = await empty(t);
      const { id: sandboxId, organizationId } = await addSandbox(db, {
        namespace: 'acme',
        name: 'a',
        spec: SPEC,
        ports: [],
      });
      const add = (started: string, ended: string | null, sizes = {}) =>
        addRun(db, { sandboxId, organizationId, started, ended, ...sizes });
      const read = async (from: string, to: string, now = to) =>
        (await readSandboxUsage(db, organizationId, windowOf(from, to, now))).map((row) => [
          new Date(row.dayMs).toISOString().slice(0, 10),
          row.vcpuSeconds,
        ]);
      return { db, organizationId, sandboxId, add, read };
    };

    test('a run counts by the day, exact to the millisecond, for what was allocated', async (t) => {
      const { db, organizationId, sandboxId, add } = await prepare(t);
      await add('2026-01-01T23:59:58.500Z', '2026-01-03T00:00:00.250Z', { vcpus: 2, memory: 512, disk: 100 });
      const rows = await readSandboxUsage(db, organizationId, windowOf('2026-01-01', '2026-02-01'));
      assert.deepEqual(
        rows.map(({ dayMs, ...row }) => ({ day: new Date(dayMs).toISOString(), ...row })),
        [
          ['2026-01-01T00:00:00.000Z', 1.5],
          ['2026-01-02T00:00:00.000Z', 86_400],
          ['2026-01-03T00:00:00.000Z', 0.25],
        ].map(([day, seconds]) => ({
          sandboxId,
          day,
          vcpuSeconds: Number(seconds) * 2,
          memoryMibSeconds: Number(seconds) * 512,
          diskMibSeconds: Number(seconds) * 100,
        })),
      );
    });

    test('only what lies in the window counts, and the window has no gap to the next', async (t) => {
      const { add, read } = await prepare(t);
      await add('2026-01-01T10:00:00.000Z', '2026-01-01T12:00:00.000Z');
      assert.deepEqual(await read('2026-01-01T11:00:00Z', '2026-01-01T11:00:10Z'), [['2026-01-01', 10]]);
      assert.deepEqual(await read('2026-01-01T09:00:00Z', '2026-01-01T11:00:00Z'), [['2026-01-01', 3600]]);
      assert.deepEqual(await read('2026-01-01T11:00:00Z', '2026-01-01T13:00:00Z'), [['2026-01-01', 3600]]);
      assert.deepEqual(await read('2026-01-01T12:00:00Z', '2026-01-02T00:00:00Z'), []);
      assert.deepEqual(await read('2026-01-01T00:00:00Z', '2026-01-01T10:00:00Z'), []);
    });

    test('a run that lasts counts until now, not until the end of the window', async (t) => {
      const { add, read } = await prepare(t);
      await add('2026-01-01T10:00:00.000Z', null);
      assert.deepEqual(await read('2026-01-01', '2026-02-01', '2026-01-01T10:00:07Z'), [['2026-01-01', 7]]);
      // The clock was set back to before the start.
      assert.deepEqual(await read('2026-01-01', '2026-02-01', '2026-01-01T09:00:00Z'), []);
    });

    test('a run that ended before it began counts for nothing', async (t) => {
      const { add, read } = await prepare(t);
      await add('2026-01-02T10:00:00.000Z', '2026-01-02T09:00:00.000Z');
      await add('2026-01-02T11:00:00.000Z', '2026-01-02T11:00:01.000Z');
      assert.deepEqual(await read('2026-01-01', '2026-02-01'), [['2026-01-02', 1]]);
    });

    test('deleted sandboxes keep their names, visible only in their organization', async (t) => {
      const { db, sandboxId, add } = await prepare(t);
      await add('2026-01-01T10:00:00.000Z', '2026-01-01T10:00:01.000Z');
      await db.updateTable('sandboxes').set({ removed_at: '2026-01-01T10:00:01.000Z' }).execute();
      const directory = await listSandboxNames(db, [sandboxId]);
      assert.deepEqual(
        directory.map(({ id, name: shown }) => [id, shown]),
        [[sandboxId, 'a']],
      );
      const other = await ensureOrganization(db, 'other');
      assert.deepEqual(await readSandboxUsage(db, other, windowOf('2026-01-01', '2026-02-01')), []);
    });

    test('the names of more sandboxes than fit in one statement are all found', async (t) => {
      const { db } = await prepare(t);
      const ids: string[] = [];
      for (let index = 0; index < 501; index++) {
        const sandbox = { namespace: 'acme', name: `s${index}`, spec: SPEC, ports: [] };
        ids.push((await addSandbox(db, sandbox)).id);
      }
      assert.equal(new Set((await listSandboxNames(db, ids)).map(({ id }) => id)).size, 501);
      assert.deepEqual(await listSandboxNames(db, []), []);
    });

    test('the pool of a month begins anew with the month', async (t) => {
      const { db, organizationId, add } = await prepare(t);
      await add('2026-01-31T23:00:00.000Z', '2026-02-01T02:00:00.000Z', { vcpus: 3, memory: 2048 });
      const pool = await readPoolUsage(db, organizationId, Date.parse('2026-02-10T00:00:00Z'));
      assert.deepEqual([pool.vcpuHours, pool.memoryGibHours], [6, 4]);
    });

    test('volumes count what they held, for as long as they held it', async (t) => {
      const { db, organizationId } = await prepare(t);
      const volumeId = await addVolume(db, organizationId, null);
      await addStretch(
        db,
        { volumeId, organizationId, bytes: 3 * MIB },
        '2026-01-01T23:00:00.000Z',
        '2026-01-02T00:00:00.000Z',
      );
      await addStretch(
        db,
        { volumeId, organizationId, bytes: 5 * GIB },
        '2026-01-02T00:00:00.000Z',
        '2026-01-02T00:00:10.000Z',
      );
      const rows = await readVolumeUsage(db, organizationId, windowOf('2026-01-01', '2026-02-01'));
      assert.deepEqual(
        rows.map(({ ownerId, mibSeconds }) => [ownerId, mibSeconds]),
        [
          [volumeId, 3 * 3600],
          [volumeId, 5 * 1024 * 10],
        ],
      );
      assert.equal(await readVolumeBytes(db, organizationId), 5 * GIB);
      await addVolume(db, organizationId, 7);
      assert.equal(await readVolumeRoomBytes(db, organizationId), 12 * GIB);
      await db.updateTable('volumes').set({ removed_at: '2026-01-03T00:00:00.000Z' }).execute();
      assert.equal(await readVolumeRoomBytes(db, organizationId), 0);
      assert.equal(
        (await readVolumeUsage(db, organizationId, windowOf('2026-01-01', '2026-02-01'))).length,
        2,
      );
    });

    test('snapshots count from their making to their removal', async (t) => {
      const { db, organizationId } = await prepare(t);
      await addSnapshot(db, organizationId, 2 * MIB, '2026-01-01T00:00:00.000Z', '2026-01-01T00:01:00.000Z');
      await addSnapshot(db, organizationId, 9 * GIB, '2026-01-05T00:00:00.000Z', null);
      const window = windowOf('2026-01-01', '2026-02-01', '2026-01-05T00:00:01Z');
      const rows = await readSnapshotUsage(db, organizationId, window);
      assert.deepEqual(
        rows.map(({ mibSeconds }) => mibSeconds),
        [120, 9 * 1024],
      );
      assert.equal(await readSnapshotBytes(db, organizationId), 9 * GIB);
    });
  });
}

function windowOf(from: string, to: string, now = to): TimeWindow {
  return { fromMs: Date.parse(from), toMs: Date.parse(to), nowMs: Date.parse(now) };
}
