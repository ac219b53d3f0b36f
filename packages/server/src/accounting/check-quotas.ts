import {
  DEFAULT_DISK_MIB,
  DEFAULT_MEMORY_MIB,
  DEFAULT_VCPUS,
  PlatformError,
  type SandboxSpec,
} from '@svc/contract';
import type { LimitName } from '@svc/contract/rest';
import type { Database } from '../store/database.ts';
import { listMemberships, type OrganizationRecord } from '../store/organizations.ts';
import { countRunning, countSandboxesOf, readTerms, type Terms } from '../store/quotas.ts';
import { readSnapshotBytes, readVolumeRoomBytes } from '../store/usage.ts';
import { lockUser } from '../store/users.ts';
import { readPoolUsage, type PoolUsage } from './pool-usage.ts';

const GIB = 2 ** 30;

/*
 * Call these in the transaction that takes the room, with the organization locked: what they count then stays true until its end. They
 * read the limits again, because those of the record that a request began with may be outdated. A limit that is not set costs no query.
 */

/** For one more sandbox; with `isStarted` for a run of it, too. @throws PlatformError `quota_exceeded` */
export async function checkSandboxQuota(
  db: Database,
  organization: OrganizationRecord,
  spec: SandboxSpec,
  { isStarted = false }: { readonly isStarted?: boolean } = {},
): Promise<void> {
  const terms = await readTerms(db, organization.id);
  requireActive(terms, organization);
  requireSize(terms, spec);
  if (terms.limits.max_sandboxes !== null)
    requireLimit(terms, 'max_sandboxes', (await countSandboxesOf(db, organization.id)) + 1);
  if (isStarted) await requireRun(db, organization, terms, spec.lifecycle?.ephemeral === true);
}

/** For a run of this sandbox, which does not count as running yet. @throws PlatformError `quota_exceeded` */
export async function checkRunQuota(
  db: Database,
  organization: OrganizationRecord,
  sandbox: { readonly isEphemeral: boolean },
): Promise<void> {
  const terms = await readTerms(db, organization.id);
  requireActive(terms, organization);
  await requireRun(db, organization, terms, sandbox.isEphemeral);
}

async function requireRun(
  db: Database,
  organization: OrganizationRecord,
  terms: Terms,
  isEphemeral: boolean,
): Promise<void> {
  const limit = isEphemeral ? 'max_concurrent_ephemeral_running' : 'max_concurrent_persistent_running';
  if (terms.limits[limit] !== null) {
    const { ephemeral, persistent } = await countRunning(db, organization.id);
    requireLimit(terms, limit, (isEphemeral ? ephemeral : persistent) + 1);
  }
  if (!hasHardPool(terms)) return;
  const exhausted = findExhaustedPool(terms, await readPoolUsage(db, organization.id, Date.now()));
  if (exhausted !== null) throw exceeded(exhausted.limit, exhausted.value, exhausted.maximum);
}

/**
 * For a volume of this capacity, or for growth by so much; null: a volume without a capacity of its own, which only needs some room.
 * @throws PlatformError `quota_exceeded`
 */
export async function checkVolumeQuota(
  db: Database,
  organization: OrganizationRecord,
  capacityGib: number | null,
): Promise<void> {
  const terms = await readTerms(db, organization.id);
  requireActive(terms, organization);
  if (terms.limits.max_total_storage_gib === null) return;
  const taken = (await readVolumeRoomBytes(db, organization.id)) / GIB;
  const isFull = taken >= terms.limits.max_total_storage_gib;
  if (capacityGib !== null || isFull)
    requireLimit(terms, 'max_total_storage_gib', taken + (capacityGib ?? 1));
}

/** For a managed snapshot; one of unknown size needs some room only. @throws PlatformError `quota_exceeded` */
export async function checkSnapshotQuota(
  db: Database,
  organization: Pick<OrganizationRecord, 'id' | 'slug'>,
  sizeBytes = 1,
): Promise<void> {
  const terms = await readTerms(db, organization.id);
  requireActive(terms, organization);
  if (terms.limits.max_snapshot_storage_gib === null) return;
  const taken = await readSnapshotBytes(db, organization.id);
  requireLimit(terms, 'max_snapshot_storage_gib', (taken + sizeBytes) / GIB);
}

/**
 * For one more organization of this user; locks the user, so that parallel requests are counted. null: there is no limit.
 * @throws PlatformError `quota_exceeded`
 */
export async function checkOrganizationQuota(
  db: Database,
  userId: string,
  maximum: number | null,
): Promise<void> {
  if (maximum === null) return;
  await lockUser(db, userId);
  const memberships = await listMemberships(db, userId);
  const owned = memberships.filter(({ role }) => role === 'owner').length;
  if (owned < maximum) return;
  const message = `You own ${owned} organizations, which is the most; delete one first, or ask the operator for more`;
  throw new PlatformError('quota_exceeded', message, {
    details: { limit: 'max_organizations_per_user', value: owned + 1, maximum },
  });
}

/** Whether exceeding a pool must end runs; only then usage has to be computed. */
export function hasHardPool({ isHardCap, limits }: Terms): boolean {
  return isHardCap && (limits.included_vcpu_hours !== null || limits.included_memory_gib_hours !== null);
}

/** The pool that is used up; null when none is, or when overage can be paid for. */
export function findExhaustedPool(
  { isHardCap, limits }: Terms,
  used: PoolUsage,
): { readonly limit: LimitName; readonly value: number; readonly maximum: number } | null {
  if (!isHardCap) return null;
  const pools = [
    ['included_vcpu_hours', used.vcpuHours],
    ['included_memory_gib_hours', used.memoryGibHours],
  ] as const;
  for (const [limit, value] of pools) {
    const maximum = limits[limit];
    if (maximum !== null && value >= maximum) return { limit, value, maximum };
  }
  return null;
}

function requireSize(terms: Terms, { resources }: SandboxSpec): void {
  requireLimit(terms, 'max_vcpus_per_sandbox', resources?.vcpus ?? DEFAULT_VCPUS);
  requireLimit(terms, 'max_memory_mib_per_sandbox', resources?.memory_mib ?? DEFAULT_MEMORY_MIB);
  requireLimit(terms, 'max_disk_size_mib_per_sandbox', resources?.disk_size_mib ?? DEFAULT_DISK_MIB);
}

function requireActive({ isSuspended }: Terms, { slug }: Pick<OrganizationRecord, 'slug'>): void {
  if (!isSuspended) return;
  const message = `Organization '${slug}' is suspended; ask the operator of this server`;
  throw new PlatformError('quota_exceeded', message, {
    details: { limit: 'is_suspended', value: true, maximum: false },
  });
}

function requireLimit({ limits }: Terms, limit: LimitName, value: number): void {
  const maximum = limits[limit];
  if (maximum !== null && value > maximum) throw exceeded(limit, value, maximum);
}

function exceeded(limit: LimitName, value: number, maximum: number): PlatformError {
  return new PlatformError(
    'quota_exceeded',
    `${ADVICE[limit]} (${limit} is ${maximum}, this makes it ${round(value)})`,
    {
      details: { limit, value: round(value), maximum },
    },
  );
}

function round(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

const POOL_ADVICE =
  'What the plan includes for this month is used up; wait for the next month or ask for more';
const SIZE_ADVICE = 'One sandbox may not have so much; ask for less';

/** What to do about it. */
const ADVICE: Readonly<Record<LimitName, string>> = {
  included_vcpu_hours: POOL_ADVICE,
  included_memory_gib_hours: POOL_ADVICE,
  included_disk_gib_hours: POOL_ADVICE,
  included_storage_gib: POOL_ADVICE,
  max_sandboxes: 'There are as many sandboxes as the organization may have; delete one first',
  max_concurrent_ephemeral_running: 'As many ephemeral sandboxes run as may at once; stop one first',
  max_concurrent_persistent_running: 'As many sandboxes run as may at once; stop one first',
  max_vcpus_per_sandbox: SIZE_ADVICE,
  max_memory_mib_per_sandbox: SIZE_ADVICE,
  max_disk_size_mib_per_sandbox: SIZE_ADVICE,
  max_uptime_minutes_per_sandbox: 'The sandbox ran for as long as it may',
  max_total_storage_gib:
    'The volumes take all the storage that the organization may have; delete or shrink one first',
  max_image_storage_gib: 'The images take all the storage that they may have; remove one first',
  max_snapshot_storage_gib: 'The snapshots take all the storage that they may have; delete one first',
};
