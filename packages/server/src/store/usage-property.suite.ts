import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { PlatformError, type SandboxSpec } from '@svc/contract';
import type { SandboxReport } from '@svc/contract/orchestrator';
import { verifyEvents } from './verify-events.ts';
import { observe } from '../sandboxes/observe.ts';
import { requestRemoval, requestStart, requestStop } from '../sandboxes/desired-state.ts';
import { checkSandboxQuota } from '../accounting/check-quotas.ts';
import { setQuotas } from '../accounting/set-quotas.ts';
import { readSandboxUsage } from '../accounting/sandbox-usage.ts';
import { DAY_MS } from '../accounting/time-window.ts';
import type { Database } from './database.ts';
import { listEventsAfter, type EventRecord } from './events.ts';
import { lockOrganization } from './lock-organization.ts';
import { insertSandbox } from './new-sandbox.ts';
import { ensureOrganization, findOrganization, type OrganizationRecord } from './organizations.ts';
import { countRunning, countSandboxesOf } from './quotas.ts';
import { getSandbox, type SandboxRecord } from './sandboxes.ts';

const MAX_SANDBOXES = 3;
const MAX_RUNNING = 2;
const NUM_RUNS = 40;
/** What would begin later is left out: a slow machine tries less. */
const BEGIN_WITHIN_MS = 60_000;
const BEGIN = Date.parse('2026-03-30T20:00:00Z');
const CALLER = {
  actor: { kind: 'system', code: 'test', label: 'Test' },
  requestId: null,
  sourceAddress: null,
} as const;

/** One thing that happens, and how far the clock is afterwards; it may have been set back. */
interface Step {
  readonly kind: 'create' | 'start' | 'stop' | 'crash' | 'remove' | 'restart';
  readonly which: number;
  readonly vcpus: number;
  readonly memory: number;
  readonly isEphemeral: boolean;
  readonly elapsedMs: number;
}

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom('create', 'create', 'start', 'start', 'stop', 'crash', 'remove', 'restart'),
    which: fc.nat(MAX_SANDBOXES),
    vcpus: fc.integer({ min: 1, max: 8 }),
    memory: fc.integer({ min: 16, max: 4096 }),
    isEphemeral: fc.boolean(),
    elapsedMs: fc.oneof(
      fc.integer({ min: 0, max: 5000 }),
      fc.integer({ min: 0, max: 2 * DAY_MS }),
      fc.integer({ min: -DAY_MS, max: 0 }),
    ),
  }),
  { maxLength: 25, size: 'max' },
);

/** The promise of usage and quotas, for random sequences of events. */
export function usagePropertySuite(name: string, empty: (t: TestContext) => Promise<Database>): void {
  test(`on ${name}, usage agrees with the events and no quota is exceeded after random requests`, async (t) => {
    const db = await empty(t);
    const lastBegin = performance.now() + BEGIN_WITHIN_MS;
    await fc.assert(
      fc.asyncProperty(steps, async (happened) => {
        if (performance.now() > lastBegin) return;
        const world = await createWorld(db);
        for (const step of happened) {
          await world.apply(step);
          const running = await countRunning(db, world.organization.id);
          assert.ok((await countSandboxesOf(db, world.organization.id)) <= MAX_SANDBOXES);
          assert.ok(running.ephemeral <= MAX_RUNNING && running.persistent <= MAX_RUNNING);
        }
        await compareUsage(db, world.organization, world.nowMs());
      }),
      { numRuns: NUM_RUNS, endOnFailure: true },
    );
  });
}

/** An engine whose clock we hold, and callers who want things of it. */
async function createWorld(db: Database) {
  const slug = `o-${randomUUID()}`;
  await setQuotas(db, await ensureOrganization(db, slug), {
    max_sandboxes: MAX_SANDBOXES,
    max_concurrent_ephemeral_running: MAX_RUNNING,
    max_concurrent_persistent_running: MAX_RUNNING,
  });
  const organization = await findOrganization(db, slug);
  assert.ok(organization);
  const ids: string[] = [];
  const reports = new Map<string, SandboxReport>();
  let clockMs = BEGIN;
  const change = async (work: (transaction: Database) => Promise<unknown>) =>
    await db
      .transaction()
      .execute(async (transaction) => {
        await lockOrganization(transaction, organization.id);
        await work(transaction);
        return true;
      })
      .catch((error: unknown) => {
        if (PlatformError.is(error, 'quota_exceeded') || PlatformError.is(error, 'invalid_state_transition'))
          return false;
        throw error;
      });
  const report = async (record: SandboxRecord, seen: Partial<SandboxReport>) => {
    const before = reports.get(record.id);
    const next = {
      id: record.id,
      isolation: null,
      startedAt: null,
      endedAt: null,
      end: null,
      resolved: null,
      ...before,
      ...seen,
    };
    // Every report names a state.
    reports.set(record.id, next as SandboxReport);
    await observe(db, record, next as SandboxReport);
  };
  const end = async (record: SandboxRecord, state: 'stopped' | 'failed') => {
    if (reports.get(record.id)?.state !== 'running') return;
    await report(record, { state, endedAt: stamp(clockMs), end: { reason: state, message: state } });
  };
  const withRecord = async (which: number, work: (record: SandboxRecord) => Promise<unknown>) => {
    const record = await getSandbox(db, ids[which % Math.max(ids.length, 1)] ?? '');
    if (record !== undefined && record.desired !== 'removed') await work(record);
  };
  const actions: Readonly<Record<Step['kind'], (step: Step) => Promise<unknown>>> = {
    create: (step) =>
      change(async (transaction) => ids.push(await addSandbox(transaction, organization, step))),
    start: ({ which }) =>
      withRecord(which, async (record) => {
        const isAdmitted = await change((transaction) =>
          requestStart(transaction, organization, record, CALLER),
        );
        if (!isAdmitted || reports.get(record.id)?.state === 'running') return;
        await report(record, { state: 'running', startedAt: stamp(clockMs), endedAt: null, end: null });
      }),
    stop: ({ which }) =>
      withRecord(which, async (record) => {
        if (await change((transaction) => requestStop(transaction, record, CALLER)))
          await end(record, 'stopped');
      }),
    crash: ({ which }) => withRecord(which, (record) => end(record, 'failed')),
    remove: ({ which }) =>
      withRecord(which, (record) => change((transaction) => requestRemoval(transaction, record, CALLER))),
    // The server begins anew, and is reported everything once more.
    restart: async () => {
      for (const seen of reports.values())
        await observe(db, { id: seen.id, organizationId: organization.id }, seen);
    },
  };
  return {
    organization,
    nowMs: () => clockMs,
    apply: async (step: Step) => {
      await actions[step.kind](step);
      clockMs += step.elapsedMs;
    },
  };
}

async function addSandbox(
  transaction: Database,
  organization: OrganizationRecord,
  step: Step,
): Promise<string> {
  const spec: SandboxSpec = {
    image: { type: 'oci', reference: 'x' },
    resources: { vcpus: step.vcpus, memory_mib: step.memory },
    lifecycle: { ephemeral: step.isEphemeral },
  };
  await checkSandboxQuota(transaction, organization, spec);
  const id = randomUUID();
  const rest = {
    ports: [],
    isolation: null,
    snapshotId: null,
    secrets: null,
    volumes: [],
    requestedBy: null,
  };
  const names = { id, organizationId: organization.id, name: id, slug: id };
  await insertSandbox(transaction, { ...names, ...rest, spec, isWantedRunning: false });
  return id;
}

/** Another way to the same numbers: from the events, hour by hour. */
async function compareUsage(db: Database, organization: OrganizationRecord, nowMs: number): Promise<void> {
  assert.equal((await verifyEvents(db, organization.id)).broken, null);
  const events = await listEventsAfter(db, organization.id, 0, 10_000);
  const runs = readRuns(events, nowMs);
  for (const [from, to] of [
    [BEGIN - 30 * DAY_MS, BEGIN + 90 * DAY_MS],
    [BEGIN + 3_600_000, BEGIN + DAY_MS + 1234],
  ] as const) {
    const usage = await readSandboxUsage(db, organization.id, { fromMs: from, toMs: to, nowMs });
    const reported = new Map(
      usage.map((row) => [`${row.sandboxId} ${row.dayMs}`, [row.vcpuSeconds, row.memoryMibSeconds]]),
    );
    assert.deepEqual(reported, sumByHours(runs, from, to));
  }
}

interface Run {
  readonly sandboxId: string;
  readonly startMs: number;
  endMs: number;
  readonly vcpus: number;
  readonly memory: number;
}

function readRuns(events: readonly EventRecord[], nowMs: number): readonly Run[] {
  const runs: Run[] = [];
  for (const event of events) {
    const reported = JSON.parse(event.payload) as Readonly<Record<string, string & number>>;
    if (event.event_type === 'sandbox_started') {
      const {
        sandbox_id: sandboxId = '',
        started_at: start = '',
        vcpus = 0,
        memory_mib: memory = 0,
      } = reported;
      runs.push({ sandboxId, startMs: Date.parse(start), endMs: nowMs, vcpus, memory });
    } else if (reported['ended_at'] !== undefined) {
      const run = runs.findLast(({ sandboxId }) => sandboxId === reported['sandbox_id']);
      assert.ok(run, `${event.event_type} of a run that never began`);
      run.endMs = Date.parse(reported['ended_at']);
    }
  }
  return runs;
}

function sumByHours(runs: readonly Run[], from: number, to: number): ReadonlyMap<string, readonly number[]> {
  const hour = 3_600_000;
  const sums = new Map<string, [number, number]>();
  for (const { sandboxId, startMs, endMs, vcpus, memory } of runs) {
    const last = Math.min(endMs, to);
    for (let at = Math.floor(Math.max(startMs, from) / hour) * hour; at < last; at += hour) {
      const overlap = Math.min(at + hour, last) - Math.max(at, startMs, from);
      if (overlap <= 0) continue;
      const key = `${sandboxId} ${Math.floor(at / DAY_MS) * DAY_MS}`;
      const [cpu, mib] = sums.get(key) ?? [0, 0];
      sums.set(key, [cpu + overlap * vcpus, mib + overlap * memory]);
    }
  }
  return new Map([...sums].map(([key, [cpu, mib]]) => [key, [cpu / 1000, mib / 1000]]));
}

function stamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
