import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test, type TestContext } from 'node:test';
import {
  beginCodeLease,
  endCodeLease,
  findContext,
  forgetContextsOfEnded,
  insertContext,
  interruptCode,
  isCodeInterrupted,
  listBusy,
  listContexts,
  removeContext,
  type ContextRecord,
} from './code-contexts.ts';
import type { Database } from './database.ts';
import { findOpenRun } from './processes.ts';
import { closeRun, openRun } from './runs.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

/** Behaviour of code contexts that is the same on every database. */
export function codeContextsSuite(name: string, empty: (t: TestContext) => Promise<Database>): void {
  describe(`code contexts on ${name}`, () => {
    const prepare = async (t: TestContext) => {
      const db = await empty(t);
      const spec = { image: { type: 'oci', reference: 'x' } } as const;
      const sandbox = await addSandbox(db, { namespace: 'acme', name: 'box', spec, ports: [] });
      const start = async (second: number) => {
        await openRun(db, sandbox, at(second));
        return (await findOpenRun(db, sandbox.id))?.id ?? '';
      };
      const record = (runId: string, change: Partial<ContextRecord> = {}): ContextRecord => {
        const nothing = { name: null, cwd: null, sealedEnv: null };
        const id = randomUUID();
        return {
          id,
          sandboxId: sandbox.id,
          runId,
          language: 'node',
          createdAt: at(1),
          ...nothing,
          ...change,
        };
      };
      return { db, sandbox, start, record };
    };

    test('of many that are added at once as many stay as may, and one of each name', async (t) => {
      const { db, start, record } = await prepare(t);
      const runId = await start(0);
      const add = async (names: readonly (string | null)[]) =>
        await Promise.all(names.map((given) => insertContext(db, record(runId, { name: given }), 3)));
      const named = await add(['one', 'one']);
      assert.deepEqual(named.toSorted(), ['added', 'name taken']);
      const others = await add([null, null, null, null]);
      assert.deepEqual(others.toSorted(), ['added', 'added', 'too many', 'too many']);
      assert.equal((await listContexts(db, runId)).length, 3);
    });

    test('a context goes with the run of its sandbox', async (t) => {
      const { db, sandbox, start, record } = await prepare(t);
      const first = await start(0);
      const known = record(first, { name: 'mine', cwd: '/srv', sealedEnv: 'sealed' });
      assert.equal(await insertContext(db, known, 3), 'added');
      assert.deepEqual(await findContext(db, first, 'mine'), known);
      await forgetContextsOfEnded(db);
      assert.deepEqual(await findContext(db, first, known.id), known);
      await closeRun(db, sandbox.id, at(2), 'stopped');
      assert.equal(await insertContext(db, record(first), 3), 'ended');
      await forgetContextsOfEnded(db);
      assert.equal(await findContext(db, first, known.id), undefined);
      const second = await start(3);
      await insertContext(db, record(second), 3);
      const third = await start(4);
      assert.equal(await insertContext(db, record(third), 1), 'added');
      assert.deepEqual(await listContexts(db, second), []);
    });

    test('a context is busy while code of any server runs in it, and all of it is interrupted', async (t) => {
      const { db, start, record } = await prepare(t);
      const runId = await start(0);
      const { id } = record(runId);
      assert.equal(await beginCodeLease(db, id), undefined, 'there is no such context');
      await insertContext(db, record(runId, { id }), 3);
      assert.equal(await interruptCode(db, id), false);
      const leases = [await beginCodeLease(db, id), await beginCodeLease(db, id)].map((lease) => lease ?? '');
      assert.equal(await interruptCode(db, id), true);
      for (const lease of leases) {
        assert.deepEqual(await listBusy(db, runId), new Set([id]));
        assert.equal(await isCodeInterrupted(db, lease), true);
        await endCodeLease(db, lease);
      }
      assert.deepEqual(await listBusy(db, runId), new Set());
      // The lease of a server that died.
      await beginCodeLease(db, id);
      await db
        .updateTable('code_turns')
        .set({ leased_until: at(1) })
        .execute();
      assert.deepEqual(await listBusy(db, runId), new Set());
      assert.equal(await interruptCode(db, id), false);
      const lease = (await beginCodeLease(db, id)) ?? '';
      assert.equal(await isCodeInterrupted(db, lease), false);
      assert.equal((await db.selectFrom('code_turns').selectAll().execute()).length, 1);
      await removeContext(db, id);
      assert.deepEqual(await db.selectFrom('code_turns').selectAll().execute(), []);
    });
  });
}
