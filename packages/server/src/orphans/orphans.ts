import { PlatformError } from '@svc/contract';
import type { SandboxReport } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import type { Nodes } from '../orchestrator/nodes.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import type { SnapshotStore } from '../orchestrator/snapshot-store.ts';
import type { VolumeStore } from '../orchestrator/volume-store.ts';
import type { Database } from '../store/database.ts';
import { findOwners, type OwnedKind, type Owner } from '../store/owners.ts';

/** A sandbox, volume or snapshot of the engine without a row in the store: after an older store was restored, or the database was lost. */
export interface Orphan {
  readonly kind: OwnedKind;
  readonly id: string;
  /** Of a sandbox; null for volumes and snapshots. */
  readonly state: SandboxReport['state'] | null;
  readonly image: string | null;
  readonly createdAt: string | null;
  /** The space that it takes on the disk of the host; null when unknown. */
  readonly diskBytes: number | null;
}

export interface OrphanParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly nodes: Nodes;
  readonly volumeStore: VolumeStore;
  readonly snapshotStore: SnapshotStore;
}

type Found = Omit<Orphan, 'diskBytes'>;

interface Keeping {
  readonly list: (parts: OrphanParts, signal: AbortSignal) => Promise<readonly Found[]>;
  readonly remove: (parts: OrphanParts, id: string, signal: AbortSignal) => Promise<void>;
  /** The command that its owner removes it with. */
  readonly remedy: string;
}

const KINDS: readonly OwnedKind[] = ['sandbox', 'volume', 'snapshot'];

/** How the engine keeps each kind. Removals of what is gone succeed, so that two at once do. */
const KEEPING: Readonly<Record<OwnedKind, Keeping>> = {
  sandbox: {
    list: async ({ orchestrator }, signal) =>
      (await orchestrator.list(signal)).map(({ id, state, image = null, createdAt = null }) => ({
        kind: 'sandbox',
        id,
        state,
        image,
        createdAt,
      })),
    remove: async ({ orchestrator }, id, signal) => void (await orchestrator.remove(id, signal)),
    remedy: 'svc rm',
  },
  volume: {
    list: async ({ volumeStore }, signal) =>
      (await volumeStore.listVolumes(signal)).map(({ id, createdAt }) => ({
        kind: 'volume',
        id,
        state: null,
        image: null,
        createdAt,
      })),
    remove: removeVolume,
    remedy: 'svc volume rm',
  },
  snapshot: {
    list: async ({ snapshotStore }, signal) =>
      (await snapshotStore.listSnapshots(signal)).map(({ id, image, createdAt }) => ({
        kind: 'snapshot',
        id,
        state: null,
        image: image.reference,
        createdAt,
      })),
    remove: ({ snapshotStore }, id, signal) => snapshotStore.removeSnapshot(id, signal),
    remedy: 'svc snapshot rm',
  },
};

/** @throws PlatformError `orchestrator_unreachable` */
export async function listOrphans(parts: OrphanParts, signal: AbortSignal): Promise<readonly Orphan[]> {
  const orphans: Found[] = [];
  for (const kind of KINDS) orphans.push(...(await orphansOf(parts, kind, signal)));
  if (orphans.length === 0) return [];
  const users = await parts.nodes.storageUsers(signal);
  const bytes = new Map(users.map((user) => [`${user.kind} ${user.id}`, user.bytes]));
  return orphans.map((orphan) => ({
    ...orphan,
    diskBytes: bytes.get(`${orphan.kind} ${orphan.id}`) ?? null,
  }));
}

/** Logs how many orphans there are; the operator decides what to do with them. */
export async function logOrphans(
  parts: OrphanParts & { readonly logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  const found: Partial<Record<OwnedKind, number>> = {};
  for (const kind of KINDS) {
    const { length } = await orphansOf(parts, kind, signal);
    if (length > 0) found[kind] = length;
  }
  if (Object.keys(found).length > 0)
    parts.logger.warn(
      { orphans: found },
      'the engine has what no row of the store knows; see: svc orphan ls',
    );
}

/**
 * Removes one, a sandbox with its disk; with `isForced` also a sandbox that runs.
 * @throws PlatformError `invalid_request` when a row knows it; `invalid_state_transition` when it runs; `volume_in_use`; `not_found`
 */
export async function removeOrphan(
  parts: OrphanParts,
  id: string,
  { isForced }: { readonly isForced: boolean },
  signal: AbortSignal,
): Promise<void> {
  const found = await findInEngine(parts, id, signal);
  await requireNoOwner(parts, id);
  if (found === undefined)
    throw new PlatformError('not_found', `the engine has nothing with the id ${id}\n  try: svc orphan ls`);
  const { kind, state } = found;
  if (state === 'running' && !isForced) {
    const message = `sandbox ${id} runs\n  try: svc orphan rm -f ${id}`;
    throw new PlatformError('invalid_state_transition', message, { details: { state } });
  }
  await KEEPING[kind].remove(parts, id, signal);
}

/** Lists the engine before the store, because rows are written before the engine is asked: everything listed already had its row. */
async function orphansOf(
  parts: OrphanParts,
  kind: OwnedKind,
  signal: AbortSignal,
): Promise<readonly Found[]> {
  const found = await KEEPING[kind].list(parts, signal);
  const owners = await findOwners(
    parts.database,
    kind,
    found.map(({ id }) => id),
  );
  return found.filter(({ id }) => !owners.has(id));
}

/** The sandbox that mounts it may be an orphan too. */
async function removeVolume({ volumeStore }: OrphanParts, id: string, signal: AbortSignal): Promise<void> {
  try {
    await volumeStore.removeVolume(id, signal);
  } catch (error) {
    if (!PlatformError.is(error, 'volume_in_use')) throw error;
    const message = `a sandbox has volume ${id}; remove the sandbox first\n  try: svc orphan ls`;
    throw new PlatformError('volume_in_use', message, { cause: error });
  }
}

async function findInEngine(parts: OrphanParts, id: string, signal: AbortSignal): Promise<Found | undefined> {
  for (const kind of KINDS) {
    const found = (await KEEPING[kind].list(parts, signal)).find((each) => each.id === id);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function requireNoOwner({ database }: OrphanParts, id: string): Promise<void> {
  for (const kind of KINDS) {
    const owner = (await findOwners(database, kind, [id])).get(id);
    if (owner !== undefined) throw new PlatformError('invalid_request', describeOwner(kind, id, owner));
  }
}

function describeOwner(kind: OwnedKind, id: string, { name, namespace }: Owner): string {
  if (name === null) return `${kind} ${id} is the host volume of ${namespace}`;
  const remedy = `${KEEPING[kind].remedy} ${name}   # as a member of ${namespace}`;
  return `${kind} ${id} is '${name}' of ${namespace}\n  try: ${remedy}`;
}
