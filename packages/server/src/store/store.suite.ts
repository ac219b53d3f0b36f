import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { SandboxSpec } from '@svc/contract';
import { observe } from '../sandboxes/observe.ts';
import { markUnavailable } from './outages.ts';
import type { Database } from './database.ts';
import { listKeys, recordKey, revokeAllKeys } from './signed-keys.ts';
import { ensureOrganization } from './organizations.ts';
import { closeRun, listRuns, openRun } from './runs.ts';
import {
  countSandboxes,
  findSandbox,
  findSandboxes,
  getSandbox,
  listSandboxes,
  updateSandbox,
} from './sandboxes.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';

const SPEC: SandboxSpec = {
  image: { type: 'oci', reference: 'python' },
  resources: { vcpus: 2, memory_mib: 256 },
  env: [{ key: 'A', value: '“quoted” = \u{1f600}\n' }],
};
const REPORT = { isolation: null, resolved: null, endedAt: null, end: null };
const EARLY = '2026-01-01T00:00:00.000Z';
const LATER = '2026-01-01T01:00:00.000Z';
const LATEST = '2026-01-01T02:00:00.000Z';

/** What every database must do the same. `open` gives an empty store, or the same one again when asked to reopen. */
export function storeSuite(name: string, open: (t: TestContext) => Promise<() => Promise<Database>>): void {
  describe(`the store on ${name}`, () => {
    const empty = async (t: TestContext) => await (await open(t))();
    const add = (db: Database, sandbox: string, namespace = 'default') =>
      addSandbox(db, { namespace, name: sandbox, spec: SPEC, ports: [{ host: 1, guest: 2 }] });

    test('keeps what was written when it is opened again', async (t) => {
      const reopen = await open(t);
      const { id } = await add(await reopen(), 'a');
      assert.deepEqual((await getSandbox(await reopen(), id))?.spec, SPEC);
    });

    test('makes an organization once, however many ask at once', async (t) => {
      const db = await empty(t);
      const ids = await Promise.all(Array.from({ length: 10 }, () => ensureOrganization(db, 'acme')));
      assert.equal(new Set(ids).size, 1);
      assert.notEqual(ids[0], await ensureOrganization(db, 'other'));
    });

    test('gives back a sandbox as it was added', async (t) => {
      const db = await empty(t);
      const added = await add(db, 'a', 'team');
      assert.deepEqual(await findSandbox(db, 'team', 'a'), added);
      assert.partialDeepStrictEqual(added, {
        namespace: 'team',
        name: 'a',
        version: 1,
        spec: SPEC,
        ports: [{ host: 1, guest: 2 }],
        desired: 'running',
        observed: 'starting',
        failureMessage: null,
        startedAt: null,
        endedAt: null,
        removedAt: null,
      });
    });

    test('knows a name in its own namespace only', async (t) => {
      const db = await empty(t);
      await add(db, 'a', 'one');
      await add(db, 'a', 'two');
      assert.equal(await findSandbox(db, 'three', 'a'), undefined);
      assert.equal((await listSandboxes(db, { name: 'a' })).length, 2);
      assert.equal((await listSandboxes(db, { namespace: 'one' })).length, 1);
    });

    test('replaces a sandbox of the same name and still knows the removed one', async (t) => {
      const db = await empty(t);
      const old = await add(db, 'a');
      const fresh = await add(db, 'a');
      assert.notEqual(old.id, fresh.id);
      assert.deepEqual(
        (await listSandboxes(db)).map(({ id }) => id),
        [fresh.id],
      );
      const known = await findSandboxes(db, [old.id, fresh.id, 'stranger']);
      assert.deepEqual(Object.fromEntries(known.map(({ id, desired }) => [id, desired])), {
        [old.id]: 'removed',
        [fresh.id]: 'running',
      });
      assert.deepEqual(await findSandboxes(db, []), []);
    });

    test('changes only the fields that a change names', async (t) => {
      const db = await empty(t);
      const added = await add(db, 'a');
      const failed = await updateSandbox(db, added, { observed: 'failed', failureMessage: 'no image' });
      const stopped = await updateSandbox(db, failed, { desired: 'stopped' });
      assert.partialDeepStrictEqual(stopped, { observed: 'failed', failureMessage: 'no image', version: 3 });
      assert.deepEqual(await getSandbox(db, added.id), stopped);
      assert.deepEqual(await updateSandbox(db, stopped, { desired: 'stopped' }), stopped);
    });

    test('marks only what ran as temporarily unavailable, and counts by state', async (t) => {
      const db = await empty(t);
      const added = await add(db, 'a');
      await add(db, 'b');
      await updateSandbox(db, added, { observed: 'running' });
      await markUnavailable(db, 1000);
      assert.deepEqual(Object.fromEntries(await countSandboxes(db)), {
        starting: 1,
        temporarily_unavailable: 1,
      });
      const { unavailableSince: since, recoveryEndsAt: end } = (await getSandbox(db, added.id)) ?? added;
      assert.equal(Date.parse(end ?? '') - Date.parse(since ?? ''), 1000);
    });

    test('notes a run once, however often it is reported, with the sizes it was given', async (t) => {
      const db = await empty(t);
      const record = await add(db, 'a');
      const report = { ...REPORT, id: record.id, state: 'running', startedAt: EARLY } as const;
      await observe(db, record, report);
      await observe(db, record, report);
      const runs = await listRuns(db, record.id);
      assert.deepEqual(
        runs.map((run) => ({ ...run, id: '', boot_id: null })),
        [
          {
            id: '',
            sandbox_id: record.id,
            organization_id: record.organizationId,
            vcpus: 2,
            memory_mib: 256,
            disk_mib: 4096,
            started_at: EARLY,
            ended_at: null,
            end_reason: null,
            boot_id: null,
            reported_start: EARLY,
          },
        ],
      );
    });

    test('ends a run at the time that was reported, and a sandbox that ended without a request is not started again', async (t) => {
      const db = await empty(t);
      const record = await updateSandbox(db, await add(db, 'a'), { observed: 'running' });
      const end = { reason: 'oom', message: 'it used more memory than it may' };
      const ended = { state: 'failed', startedAt: EARLY, endedAt: LATER, end } as const;
      await observe(db, record, { ...REPORT, id: record.id, ...ended });
      const [run, ...more] = await listRuns(db, record.id);
      assert.deepEqual([run?.started_at, run?.ended_at, run?.end_reason], [EARLY, LATER, 'oom']);
      assert.equal(more.length, 0);
      const seen = await getSandbox(db, record.id);
      assert.deepEqual(
        [seen?.desired, seen?.observed, seen?.failureMessage],
        ['stopped', 'failed', end.message],
      );
    });

    test('a start that a stop ended is stopped, also when the engine calls it failed', async (t) => {
      const db = await empty(t);
      const starting = await updateSandbox(db, await add(db, 'a'), { observed: 'starting' });
      const record = await updateSandbox(db, starting, { desired: 'stopped', observed: 'stopping' });
      const end = { reason: 'start_failed', message: 'no room is left' };
      const ended = { state: 'failed', startedAt: null, endedAt: LATER, end } as const;
      await observe(db, record, { ...REPORT, id: record.id, ...ended });
      const seen = await getSandbox(db, record.id);
      assert.deepEqual([seen?.observed, seen?.failureMessage], ['stopped', null]);
      assert.deepEqual(await listRuns(db, record.id), []);
    });

    test('a run whose end was not observed ends when the next one begins', async (t) => {
      const db = await empty(t);
      const record = await add(db, 'a');
      const { id } = record;
      await openRun(db, record, EARLY);
      await openRun(db, record, LATER);
      await closeRun(db, id, LATEST, 'stopped');
      assert.deepEqual(
        (await listRuns(db, id)).map((run) => [run.started_at, run.ended_at]),
        [
          [EARLY, LATER],
          [LATER, LATEST],
        ],
      );
    });

    test('a run never ends before it began, also when the clock was set back', async (t) => {
      const db = await empty(t);
      const record = await add(db, 'a');
      const { id } = record;
      await openRun(db, record, LATER);
      await closeRun(db, id, EARLY, 'stopped');
      await closeRun(db, id, LATEST, 'stopped');
      assert.deepEqual(
        (await listRuns(db, id)).map((run) => [run.started_at, run.ended_at]),
        [[LATER, LATER]],
      );
    });

    test('a failed step undoes the whole transaction', async (t) => {
      const db = await empty(t);
      const work = db.transaction().execute(async (transaction) => {
        await ensureOrganization(transaction, 'half');
        throw new Error('crash');
      });
      await assert.rejects(work, /crash/);
      assert.deepEqual(await db.selectFrom('organizations').selectAll().execute(), []);
    });

    test('keeps of a key only what cannot be used', async (t) => {
      const db = await empty(t);
      const key = { namespace: '*', createdAt: EARLY, expiresAt: null };
      await recordKey(db, 'svc_secret', key);
      await recordKey(db, 'svc_secret', key);
      const rows = await listKeys(db);
      assert.equal(rows.length, 1);
      assert.ok(!JSON.stringify(rows).includes('svc_secret'));
      await revokeAllKeys(db);
      assert.deepEqual(await listKeys(db), []);
    });
  });
}
