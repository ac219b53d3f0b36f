import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test, type TestContext } from 'node:test';
import { PlatformError, type SandboxSpec } from '@svc/contract';
import { SELF_HOSTED_PLAN, type BillingPlan } from '@svc/contract/rest';
import { findOverruns } from '../accounting/find-overruns.ts';
import { recordRefusal } from '../dispatch/record-refusal.ts';
import {
  checkRunQuota,
  checkSandboxQuota,
  checkSnapshotQuota,
  checkVolumeQuota,
} from '../accounting/check-quotas.ts';
import { setQuotas, type QuotaChanges } from '../accounting/set-quotas.ts';
import type { Database } from './database.ts';
import { listEvents } from './events.ts';
import { lockOrganization } from './lock-organization.ts';
import { insertSandbox } from './new-sandbox.ts';
import { ensureOrganization, findOrganization, type OrganizationRecord } from './organizations.ts';
import { listPlans, putPlans } from './plans.ts';
import { countRunning, countSandboxesOf, readTerms } from './quotas.ts';
import { openRun } from './runs.ts';
import { getSandbox, type SandboxChange } from './sandboxes.ts';
import { addVolume } from './volumes.ts';

const SPEC: SandboxSpec = { image: { type: 'oci', reference: 'x' } };
const PRO: BillingPlan = { ...SELF_HOSTED_PLAN, name: 'pro', is_default: false, max_sandboxes: 5 };
const NOW = Date.parse('2026-01-15T00:00:00Z');

/** Behaviour of quotas that is the same on every database. */
export function quotasSuite(name: string, empty: (t: TestContext) => Promise<Database>): void {
  describe(`quotas on ${name}`, () => {
    const prepare = async (t: TestContext, quotas: QuotaChanges = {}) => {
      const db = await empty(t);
      const organizationId = await ensureOrganization(db, 'acme');
      await setQuotas(db, organizationId, quotas);
      const organization = await findOrganization(db, 'acme');
      assert.ok(organization);
      return { db, organization };
    };

    test('without plans everything is allowed, and nothing costs anything', async (t) => {
      const { db, organization } = await prepare(t);
      assert.deepEqual(await listPlans(db), [SELF_HOSTED_PLAN]);
      const { plan, isHardCap, limits } = await readTerms(db, organization.id);
      assert.equal(plan.name, 'self_hosted');
      assert.equal(isHardCap, true);
      assert.ok(Object.values(limits).every((limit) => limit === null));
    });

    test('an own limit comes before the plan, and a plan that is not there is the default', async (t) => {
      const { db, organization } = await prepare(t);
      const limit = async () => (await readTerms(db, organization.id)).limits.max_sandboxes;
      await putPlans(db, [PRO]);
      assert.equal(await limit(), null);
      await setQuotas(db, organization.id, { plan: 'pro' });
      assert.equal(await limit(), 5);
      await setQuotas(db, organization.id, { max_sandboxes: 0 });
      assert.equal(await limit(), 0);
      await setQuotas(db, organization.id, { max_sandboxes: null, max_total_storage_gib: 1 });
      assert.equal(await limit(), null);
      await setQuotas(db, organization.id, { max_sandboxes: 'plan' });
      assert.equal(await limit(), 5);
      assert.equal((await readTerms(db, organization.id)).limits.max_total_storage_gib, 1);
      await putPlans(db, [{ ...PRO, name: 'free', max_sandboxes: 2, is_default: true }]);
      assert.equal(await limit(), 2);
      assert.deepEqual(
        (await listPlans(db)).map((plan) => plan.name),
        ['free'],
      );
    });

    test('a bad change names its field and changes nothing', async (t) => {
      const { db, organization } = await prepare(t);
      const bad: readonly [string, unknown][] = [
        ['max_everything', 1],
        ['max_sandboxes', -1],
        ['max_sandboxes', 1.5],
        ['max_sandboxes', 'many'],
        ['max_sandboxes', Number.POSITIVE_INFINITY],
        ['plan', 'gold'],
        ['plan', 3],
        ['is_suspended', 'yes'],
      ];
      for (const [field, value] of bad) {
        await assert.rejects(
          setQuotas(db, organization.id, { max_sandboxes: 1, [field]: value }),
          (error) => PlatformError.is(error, 'invalid_request') && error.details?.['field'] === field,
        );
      }
      assert.equal((await readTerms(db, organization.id)).hasOwnLimits, false);
      const missing = setQuotas(db, randomUUID(), { max_sandboxes: 1 });
      await assert.rejects(missing, (error) => PlatformError.is(error, 'org_not_found'));
    });

    test('each limit on a sandbox is refused by name, with the value and the maximum', async (t) => {
      const { db, organization } = await prepare(t, {
        max_vcpus_per_sandbox: 2,
        max_memory_mib_per_sandbox: 512,
        max_disk_size_mib_per_sandbox: 4096,
      });
      const ask = (resources: SandboxSpec['resources']) =>
        checkSandboxQuota(db, organization, {
          ...SPEC,
          ...(resources === undefined ? {} : { resources }),
        });
      await ask(undefined);
      await ask({ vcpus: 2, memory_mib: 512, disk_size_mib: 4096 });
      await refused(ask({ vcpus: 3, memory_mib: 16 }), 'max_vcpus_per_sandbox', 3, 2);
      await refused(ask({ vcpus: 1, memory_mib: 513 }), 'max_memory_mib_per_sandbox', 513, 512);
      const large = ask({ vcpus: 1, memory_mib: 512, disk_size_mib: 4097 });
      await refused(large, 'max_disk_size_mib_per_sandbox', 4097, 4096);
      await setQuotas(db, organization.id, { max_disk_size_mib_per_sandbox: 4095 });
      // The default of an omitted size counts too.
      await refused(ask(undefined), 'max_disk_size_mib_per_sandbox', 4096, 4095);
    });

    test('a suspended organization can make and start nothing', async (t) => {
      const { db, organization } = await prepare(t, { is_suspended: true });
      const asks = [
        () => checkSandboxQuota(db, organization, SPEC),
        () => checkRunQuota(db, organization, { isEphemeral: true }),
        () => checkVolumeQuota(db, organization, null),
        () => checkSnapshotQuota(db, organization),
      ];
      for (const ask of asks) await refused(ask(), 'is_suspended', true, false);
      await setQuotas(db, organization.id, { is_suspended: false });
      await checkSandboxQuota(db, organization, SPEC);
    });

    test('of 100 creates at once against a limit of 10, exactly 10 succeed', async (t) => {
      const { db, organization } = await prepare(t, { max_sandboxes: 10 });
      const ends = await Promise.allSettled(Array.from({ length: 100 }, () => create(db, organization)));
      assert.equal(ends.filter((end) => end.status === 'fulfilled').length, 10);
      assert.equal(await countSandboxesOf(db, organization.id), 10);
      const failures = ends.filter((end) => end.status === 'rejected');
      assert.ok(failures.every(({ reason }) => PlatformError.is(reason, 'quota_exceeded')));
    });

    test('running, starting and unavailable ones hold room; failed, stopping and removed ones do not', async (t) => {
      const { db, organization } = await prepare(t, { max_concurrent_persistent_running: 1 });
      const { id } = await create(db, organization, { isWantedRunning: true });
      const ask = () => checkRunQuota(db, organization, { isEphemeral: false });
      for (const observed of [
        'starting',
        'running',
        'temporarily_unavailable',
        'recovery_decision_required',
      ] as const) {
        await change(db, id, { desired: 'running', observed });
        await refused(ask(), 'max_concurrent_persistent_running', 2, 1);
      }
      await change(db, id, { desired: 'restarted', observed: 'starting' });
      await refused(ask(), 'max_concurrent_persistent_running', 2, 1);
      for (const observed of ['failed', 'stopping', 'stopped'] as const) {
        await change(db, id, { desired: 'stopped', observed });
        await ask();
      }
      await change(db, id, { desired: 'running', observed: 'failed' });
      await ask();
      await change(db, id, { desired: 'running', observed: 'running' });
      await db.updateTable('sandboxes').set({ removed_at: '2026-01-01T00:00:00.000Z' }).execute();
      await ask();
    });

    test('ephemeral and persistent sandboxes have rooms of their own', async (t) => {
      const { db, organization } = await prepare(t, {
        max_concurrent_ephemeral_running: 1,
        max_concurrent_persistent_running: 0,
      });
      await checkRunQuota(db, organization, { isEphemeral: true });
      const persistent = checkRunQuota(db, organization, { isEphemeral: false });
      await refused(persistent, 'max_concurrent_persistent_running', 1, 0);
      await create(db, organization, {
        isWantedRunning: true,
        spec: { ...SPEC, lifecycle: { ephemeral: true } },
      });
      assert.deepEqual(await countRunning(db, organization.id), { ephemeral: 1, persistent: 0 });
      const second = checkRunQuota(db, organization, { isEphemeral: true });
      await refused(second, 'max_concurrent_ephemeral_running', 2, 1);
    });

    test('volumes share the storage of their organization', async (t) => {
      const { db, organization } = await prepare(t, { max_total_storage_gib: 10 });
      const add = (volume: string, capacityGib: number | null) =>
        addVolume(db, { organizationId: organization.id, name: volume, capacityGib, labels: {} });
      await checkVolumeQuota(db, organization, 10);
      await add('a', 8);
      await checkVolumeQuota(db, organization, 2);
      await refused(checkVolumeQuota(db, organization, 3), 'max_total_storage_gib', 11, 10);
      await checkVolumeQuota(db, organization, null);
      await add('b', 2);
      await refused(checkVolumeQuota(db, organization, null), 'max_total_storage_gib', 11, 10);
    });

    test('a pool that is used up stops what runs and starts nothing, unless more can be paid for', async (t) => {
      const { db, organization } = await prepare(t, { included_vcpu_hours: 1000 });
      const { id } = await create(db, organization, { isWantedRunning: true });
      const record = await getSandbox(db, id);
      assert.ok(record);
      await openRun(db, record, new Date().toISOString());
      assert.deepEqual(await findOverruns(db), []);
      await checkRunQuota(db, organization, { isEphemeral: false });
      for (const pool of ['included_vcpu_hours', 'included_memory_gib_hours']) {
        await setQuotas(db, organization.id, { included_vcpu_hours: null, [pool]: 0 });
        const overruns = await findOverruns(db);
        assert.deepEqual(
          overruns.map(({ sandboxId, limit }) => [sandboxId, limit]),
          [[id, pool]],
        );
        await assert.rejects(checkRunQuota(db, organization, { isEphemeral: false }), isQuota(pool));
      }
      await putPlans(db, [{ ...SELF_HOSTED_PLAN, usage_vcpu_hour_usd: 0.1 }]);
      assert.deepEqual(await findOverruns(db), []);
      await checkRunQuota(db, organization, { isEphemeral: false });
    });

    test('a run that lasted too long is found, and one that is being stopped is not found again', async (t) => {
      const { db, organization } = await prepare(t, { max_uptime_minutes_per_sandbox: 10 });
      const { id } = await create(db, organization, { isWantedRunning: true });
      const record = await getSandbox(db, id);
      assert.ok(record);
      await openRun(db, record, new Date(NOW).toISOString());
      assert.deepEqual(await findOverruns(db, NOW + 10 * 60_000 - 1), []);
      const [overrun] = await findOverruns(db, NOW + 10 * 60_000);
      assert.partialDeepStrictEqual(overrun, {
        sandboxId: id,
        organizationId: organization.id,
        limit: 'max_uptime_minutes_per_sandbox',
        value: 10,
        maximum: 10,
      });
      await change(db, id, { desired: 'stopped', observed: 'stopping' });
      assert.deepEqual(await findOverruns(db, NOW + 20 * 60_000), []);
    });

    test('a change and a refusal are written to the chain of events', async (t) => {
      const { db, organization } = await prepare(t, { max_sandboxes: 0 });
      const error: unknown = await checkSandboxQuota(db, organization, SPEC).catch(
        (failure: unknown) => failure,
      );
      const origin = {
        organizationId: organization.id,
        operation: 'sandboxes.create',
        actor: { kind: 'api_key', api_key_id: 'k', name: 'key' },
        requestId: 'r',
        sourceAddress: '192.0.2.1',
      } as const;
      await recordRefusal(db, error, origin);
      await recordRefusal(db, new PlatformError('internal', 'not about quotas'), origin);
      const events = await listEvents(db, organization.id, {}, { before: null, limit: 10 });
      assert.deepEqual(
        events.map(({ event_type, payload }) => [event_type, JSON.parse(payload)]),
        [
          ['quota_exceeded', { operation: 'sandboxes.create', limit: 'max_sandboxes', value: 1, maximum: 0 }],
          ['quota_changed', { max_sandboxes: 0 }],
        ],
      );
      assert.equal(events[0]?.source_address, '192.0.2.1');
    });
  });
}

/** Works like a handler: locks the organization, checks the quota, and then inserts. */
async function create(
  db: Database,
  organization: OrganizationRecord,
  { isWantedRunning = false, spec = SPEC } = {},
): Promise<{ readonly id: string }> {
  return await db.transaction().execute(async (transaction) => {
    await lockOrganization(transaction, organization.id);
    await checkSandboxQuota(transaction, organization, spec);
    const id = randomUUID();
    return await insertSandbox(transaction, {
      id,
      organizationId: organization.id,
      name: id,
      slug: id,
      spec,
      ports: [],
      isolation: null,
      snapshotId: null,
      secrets: null,
      volumes: [],
      isWantedRunning,
      requestedBy: null,
    });
  });
}

/** Sets the state directly; a real sandbox reaches it step by step. */
async function change(
  db: Database,
  id: string,
  to: Pick<SandboxChange, 'desired' | 'observed'>,
): Promise<void> {
  await db.updateTable('sandboxes').set(to).where('id', '=', id).execute();
}

function isQuota(limit: string) {
  return (error: unknown) => PlatformError.is(error, 'quota_exceeded') && error.details?.['limit'] === limit;
}

async function refused(ask: Promise<void>, limit: string, value: unknown, maximum: unknown): Promise<void> {
  await assert.rejects(ask, (error) => {
    assert.ok(PlatformError.is(error, 'quota_exceeded'));
    assert.deepEqual(error.details, { limit, value, maximum });
    assert.ok(error.message.length > 20);
    return true;
  });
}
