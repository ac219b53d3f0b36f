import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { Database } from './database.ts';
import { ensureOrganization } from './organizations.ts';
import {
  claimSnapshotOperation,
  endSnapshotOperation,
  extendSnapshotClaim,
  findRemovedSnapshots,
  insertSnapshotOperation,
  releaseSnapshotOperation,
} from './snapshots.ts';

const LEASE_MS = 60_000;

/** What every database must do the same with snapshots that are being made. */
export function snapshotSuite(name: string, open: (t: TestContext) => Promise<Database>): void {
  describe(`snapshot operations on ${name}`, () => {
    const queue = async (db: Database, snapshotName: string) =>
      await insertSnapshotOperation(db, {
        organizationId: await ensureOrganization(db, 'acme'),
        snapshotName,
        sandboxId: '00000000-0000-4000-8000-000000000000',
        sandboxName: 'source',
        labels: {},
        shouldReplace: false,
      });

    test('of many servers that look for work, one gets it', async (t) => {
      const db = await open(t);
      const { id } = await queue(db, 'a');
      const claims = await Promise.all(
        Array.from({ length: 10 }, (_, index) => claimSnapshotOperation(db, `server-${index}`, LEASE_MS)),
      );
      const won = claims.filter((claim) => claim !== undefined);
      assert.deepEqual(
        won.map((claim) => [claim.id, claim.status]),
        [[id, 'in_progress']],
      );
    });

    test('work whose server is gone is taken up by another, and not before', async (t) => {
      const db = await open(t);
      const { id } = await queue(db, 'a');
      await claimSnapshotOperation(db, 'one', -1);
      await extendSnapshotClaim(db, id, 'one', LEASE_MS);
      assert.equal(await claimSnapshotOperation(db, 'two', LEASE_MS), undefined);
      await extendSnapshotClaim(db, id, 'one', -1);
      assert.equal((await claimSnapshotOperation(db, 'two', LEASE_MS))?.id, id);
    });

    test('work that is given back or over is handled as such', async (t) => {
      const db = await open(t);
      const { id, snapshotId } = await queue(db, 'a');
      await claimSnapshotOperation(db, 'one', LEASE_MS);
      await releaseSnapshotOperation(db, id);
      assert.equal((await claimSnapshotOperation(db, 'two', LEASE_MS))?.id, id);
      await endSnapshotOperation(db, id, { code: 'disk_full', message: 'full' });
      assert.equal(await claimSnapshotOperation(db, 'three', LEASE_MS), undefined);
      assert.deepEqual(await findRemovedSnapshots(db, [snapshotId, 'unknown']), [snapshotId]);
    });
  });
}
