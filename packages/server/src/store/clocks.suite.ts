import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { SandboxSpec } from '@svc/contract';
import { readSandboxUsage } from '../accounting/sandbox-usage.ts';
import { DAY_MS } from '../accounting/time-window.ts';
import { followClock, SEEN_INTERVAL_MS, type HostClock } from './clocks.ts';
import type { Database } from './database.ts';
import { closeRun, listRuns, openRun } from './runs.ts';
import type { SandboxRecord } from './sandboxes.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';

const BEGIN = Date.parse('2026-03-30T10:00:00Z');
const MINUTE_MS = 60_000;

/** A host whose clock we set, and two servers on it. */
class TestHost implements HostClock {
  bootId = 'first';
  #upMs = MINUTE_MS;
  #offsetMs = BEGIN - MINUTE_MS;

  nowMs(): number {
    return this.#offsetMs + this.#upMs;
  }
  uptimeMs(): number {
    return this.#upMs;
  }
  iso(): string {
    return new Date(this.nowMs()).toISOString();
  }
  wait(milliseconds: number): void {
    this.#upMs += milliseconds;
  }
  setClock(stepMs: number): void {
    this.#offsetMs += stepMs;
  }
  /** Comes up again with a clock that is behind by as much. */
  restart(behindMs: number): void {
    this.#offsetMs = this.nowMs() - behindMs;
    this.#upMs = 0;
    this.bootId = 'second';
  }
}

/** What every database must do the same when clocks are set and hosts go down. */
export function clocksSuite(name: string, open: (t: TestContext) => Promise<() => Promise<Database>>): void {
  const begin = async (t: TestContext) => {
    const opened = await open(t);
    const [one, two] = [await opened(), await opened()];
    const host = new TestHost();
    const spec: SandboxSpec = { image: { type: 'oci', reference: 'x' }, resources: { vcpus: 1 } };
    const sandbox = await addSandbox(one, { namespace: 'default', name: 'a', spec, ports: [] });
    await followClock(one, host);
    await followClock(two, host);
    return { one, two, host, sandbox, openAgain: opened };
  };

  describe(`clocks on ${name}`, () => {
    for (const stepMs of [-90 * MINUTE_MS, 90 * MINUTE_MS]) {
      test(`a run lasts as long as it really does when the clock is set by ${stepMs / MINUTE_MS} minutes`, async (t) => {
        const { one, two, host, sandbox } = await begin(t);
        await openRun(one, sandbox, host.iso(), host);
        const reported = host.iso();
        host.wait(20 * MINUTE_MS);
        host.setClock(stepMs);
        // Both servers notice; it was one step.
        await followClock(one, host);
        await followClock(two, host);
        host.wait(10 * MINUTE_MS);
        assert.equal(await usedMinutes(one, sandbox, host), 30);
        assert.equal((await openRun(two, sandbox, reported, host)).isNew, false);
        await closeRun(one, sandbox.id, host.iso(), 'stopped', host);
        host.wait(10 * MINUTE_MS);
        assert.equal(await usedMinutes(one, sandbox, host), 30);
      });
    }

    test('a server that was away while the clock was set catches up', async (t) => {
      const { one, host, sandbox, openAgain } = await begin(t);
      await openRun(one, sandbox, host.iso(), host);
      host.wait(20 * MINUTE_MS);
      host.setClock(-90 * MINUTE_MS);
      await followClock(await openAgain(), host);
      assert.equal(await usedMinutes(one, sandbox, host), 20);
    });

    test('a run whose end was not observed ends with the next one, also after the clock was set back', async (t) => {
      const { one, host, sandbox } = await begin(t);
      await openRun(one, sandbox, host.iso(), host);
      host.wait(30 * MINUTE_MS);
      host.setClock(-90 * MINUTE_MS);
      await followClock(one, host);
      const { isNew, cutOff } = await openRun(one, sandbox, host.iso(), host);
      assert.deepEqual([isNew, cutOff?.end_reason], [true, 'unknown']);
      host.wait(5 * MINUTE_MS);
      assert.equal(await usedMinutes(one, sandbox, host), 35);
    });

    test('a run that ended with its host lasted until it was last seen, however late the host came back', async (t) => {
      const { one, host, sandbox } = await begin(t);
      await openRun(one, sandbox, host.iso(), host);
      host.wait(30 * MINUTE_MS);
      await followClock(one, host);
      host.wait(SEEN_INTERVAL_MS / 2);
      await followClock(one, host);
      host.wait(8 * 60 * MINUTE_MS);
      host.restart(0);
      await followClock(one, host);
      const run = await closeRun(one, sandbox.id, host.iso(), 'host_restart', host);
      assert.equal(run?.ended_at, new Date(BEGIN + 30 * MINUTE_MS).toISOString());
    });

    test('a start after the host came back with a clock that is behind is another run', async (t) => {
      const { one, host, sandbox } = await begin(t);
      await openRun(one, sandbox, host.iso(), host);
      host.wait(30 * MINUTE_MS);
      await followClock(one, host);
      host.restart(10 * 60 * MINUTE_MS);
      await followClock(one, host);
      await openRun(one, sandbox, host.iso(), host);
      host.wait(5 * MINUTE_MS);
      await closeRun(one, sandbox.id, host.iso(), 'stopped', host);
      const lengths = (await listRuns(one, sandbox.id)).map(
        (run) => (Date.parse(run.ended_at ?? '') - Date.parse(run.started_at)) / MINUTE_MS,
      );
      assert.deepEqual(lengths, [5, 30]);
    });
  });
}

async function usedMinutes(db: Database, sandbox: SandboxRecord, host: HostClock): Promise<number> {
  const nowMs = host.nowMs();
  const window = { fromMs: BEGIN - DAY_MS, toMs: BEGIN + DAY_MS, nowMs };
  const rows = await readSandboxUsage(db, sandbox.organizationId, window);
  const vcpuSeconds = rows.reduce((sum, row) => sum + row.vcpuSeconds, 0);
  return vcpuSeconds / 60;
}
