import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test, type TestContext } from 'node:test';
import type { Database } from './database.ts';
import {
  findOpenRun,
  findProcess,
  forgetOfRemoved,
  forgetEnded,
  getRuns,
  insertProcess,
  listProcesses,
  listSandboxesWithUnfinished,
  listUnfinished,
  noteProcess,
  removeProcess,
  type ProcessExit,
  type ProcessRecord,
} from './processes.ts';
import { closeRun, openRun } from './runs.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';
import { isUniqueViolation } from './unique-violation.ts';

const EXIT: ProcessExit = { code: 3, signal: null, reason: 'exit', killedBy: null, message: 'it exited' };
const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

/** What every database must do the same with processes. */
export function processesSuite(name: string, empty: (t: TestContext) => Promise<Database>): void {
  describe(`processes on ${name}`, () => {
    const prepare = async (t: TestContext) => {
      const db = await empty(t);
      const spec = { image: { type: 'oci', reference: 'x' } } as const;
      const sandbox = await addSandbox(db, { namespace: 'acme', name: 'box', spec, ports: [] });
      await openRun(db, sandbox, at(0));
      const run = await findOpenRun(db, sandbox.id);
      assert.ok(run !== undefined);
      const add = async (change: Partial<ProcessRecord> = {}): Promise<ProcessRecord> => {
        const record: ProcessRecord = {
          id: randomUUID(),
          organizationId: sandbox.organizationId,
          sandboxId: sandbox.id,
          runId: run.id,
          name: null,
          pid: 7,
          command: ['sh', '-c', 'x'],
          isTty: false,
          startedAt: at(1),
          endedAt: null,
          exit: null,
          stdoutBytes: 0,
          stderrBytes: 0,
          ...change,
        };
        await insertProcess(db, record);
        return record;
      };
      return { db, sandbox, run, add };
    };

    test('a process is found by id and by name, the latest of a name first', async (t) => {
      const { db, sandbox, add } = await prepare(t);
      const old = await add({ name: 'job', endedAt: at(2), exit: EXIT });
      const recent = await add({ name: 'job', startedAt: at(3), stdoutBytes: 2 ** 40 });
      assert.deepEqual(await findProcess(db, sandbox.id, 'job'), recent);
      assert.deepEqual(await findProcess(db, sandbox.id, old.id.toUpperCase()), old);
      assert.equal(await findProcess(db, randomUUID(), recent.id), undefined);
      await removeProcess(db, recent.id);
      assert.deepEqual(await findProcess(db, sandbox.id, 'job'), old);
    });

    test('processes of sandboxes that were removed long ago are forgotten, others are not', async (t) => {
      const { db, sandbox, add } = await prepare(t);
      const { id } = await add({ endedAt: at(2), exit: EXIT });
      await forgetOfRemoved(db, at(100));
      assert.ok(await findProcess(db, sandbox.id, id));
      await db
        .updateTable('sandboxes')
        .set({ removed_at: at(50) })
        .where('id', '=', sandbox.id)
        .execute();
      await forgetOfRemoved(db, at(50));
      assert.ok(await findProcess(db, sandbox.id, id));
      await forgetOfRemoved(db, at(51));
      assert.equal(await findProcess(db, sandbox.id, id), undefined);
    });

    test('a name belongs to one process that runs', async (t) => {
      const { db, add } = await prepare(t);
      const first = await add({ name: 'job' });
      await assert.rejects(add({ name: 'job' }), isUniqueViolation);
      await noteProcess(db, first.id, { endedAt: at(2), exit: EXIT });
      await add({ name: 'job' });
    });

    test('the end that was seen first stays', async (t) => {
      const { db, sandbox, add } = await prepare(t);
      const { id } = await add();
      await noteProcess(db, id, { stdoutBytes: 5, pid: 8 });
      await noteProcess(db, id, { endedAt: at(2), exit: EXIT, stderrBytes: 6 });
      await noteProcess(db, id, { endedAt: at(9), exit: { ...EXIT, reason: 'host_lost' } });
      const { pid, exit, endedAt, stdoutBytes, stderrBytes } = (await findProcess(db, sandbox.id, id)) ?? {};
      assert.deepEqual([pid, exit, endedAt, stdoutBytes, stderrBytes], [8, EXIT, at(2), 5, 6]);
    });

    test('pages are newest first and of one status', async (t) => {
      const { db, sandbox, add } = await prepare(t);
      const records: ProcessRecord[] = [];
      for (let i = 0; i < 5; i++) {
        records.unshift(
          await add({ startedAt: at(i), ...(i % 2 === 0 ? { endedAt: at(9), exit: EXIT } : {}) }),
        );
      }
      const page = { limit: 2, after: null };
      const ids = (rows: readonly ProcessRecord[]) => rows.map(({ id }) => id);
      const first = await listProcesses(db, sandbox.id, page, undefined);
      assert.deepEqual(ids(first), ids(records.slice(0, 3)));
      const after = [records[1]?.startedAt ?? '', records[1]?.id ?? ''];
      assert.deepEqual(
        ids(await listProcesses(db, sandbox.id, { limit: 9, after }, undefined)),
        ids(records.slice(2)),
      );
      const running = records.filter(({ exit }) => exit === null);
      assert.deepEqual(
        ids(await listProcesses(db, sandbox.id, { limit: 9, after: null }, 'running')),
        ids(running),
      );
      assert.deepEqual(ids(await listUnfinished(db, sandbox.id)).toSorted(), ids(running).toSorted());
      assert.deepEqual(await listSandboxesWithUnfinished(db), [sandbox.id]);
    });

    test('of those that ended, the latest are kept', async (t) => {
      const { db, sandbox, add } = await prepare(t);
      const running = await add();
      for (let i = 2; i < 7; i++) await add({ startedAt: at(i), endedAt: at(i), exit: EXIT });
      await forgetEnded(db, sandbox.id, 5);
      assert.equal((await listProcesses(db, sandbox.id, { limit: 9, after: null }, undefined)).length, 6);
      await forgetEnded(db, sandbox.id, 2);
      const left = await listProcesses(db, sandbox.id, { limit: 9, after: null }, undefined);
      assert.deepEqual(
        left.map(({ startedAt }) => startedAt),
        [at(6), at(5), running.startedAt],
      );
    });

    test('the run of a process says when and why it ended', async (t) => {
      const { db, sandbox, run } = await prepare(t);
      await closeRun(db, sandbox.id, at(5), 'max_duration');
      assert.equal(await findOpenRun(db, sandbox.id), undefined);
      const ended = (await getRuns(db, [run.id, run.id])).get(run.id);
      assert.deepEqual([ended?.ended_at, ended?.end_reason], [at(5), 'max_duration']);
      assert.equal((await getRuns(db, [])).size, 0);
    });
  });
}
