import { PlatformError } from '@svc/contract';
import type { Orchestrator, SandboxReport } from '../orchestrator/orchestrator.ts';
import type { Database } from '../store/database.ts';
import { findSandboxes } from '../store/sandboxes.ts';

/** A query names this many ids at most. */
const IDS_AT_ONCE = 500;

/** A sandbox that the engine has and no row of the store knows: after an older store was put back, or the database was lost. */
export interface Orphan {
  readonly id: string;
  readonly state: SandboxReport['state'];
  readonly image: string | null;
  readonly createdAt: string | null;
  /** What its disk takes; null when nobody can say. */
  readonly diskBytes: number | null;
}

export interface OrphanParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
}

/** @throws PlatformError `orchestrator_unreachable` */
export async function listOrphans(
  { database, orchestrator }: OrphanParts,
  signal: AbortSignal,
): Promise<readonly Orphan[]> {
  // Rows are written before the engine is asked for their sandbox. So the engine first: whatever it has had its row by then.
  const reports = await orchestrator.list(signal);
  const known = await knownIds(
    database,
    reports.map(({ id }) => id),
  );
  const orphans = reports.filter(({ id }) => !known.has(id));
  if (orphans.length === 0) return [];
  const { users } = await orchestrator.storage(signal);
  const bytes = new Map(users.flatMap((user) => (user.kind === 'sandbox' ? [[user.id, user.bytes]] : [])));
  return orphans.map(({ id, state, image, createdAt }) => ({
    id,
    state,
    image: image ?? null,
    createdAt: createdAt ?? null,
    diskBytes: bytes.get(id) ?? null,
  }));
}

/**
 * Removes one with its disk; with `isForced` also one that runs.
 * @throws PlatformError `invalid_request` when a row knows it; `invalid_state_transition` when it runs; `sandbox_not_found`
 */
export async function removeOrphan(
  { database, orchestrator }: OrphanParts,
  id: string,
  { isForced }: { readonly isForced: boolean },
  signal: AbortSignal,
): Promise<void> {
  const [record] = await findSandboxes(database, [id]);
  if (record !== undefined) {
    const message = `sandbox ${id} is '${record.name}' of ${record.namespace}`;
    const remedy = `svc rm ${record.name}   # as somebody of ${record.namespace}`;
    throw new PlatformError('invalid_request', `${message}\n  try: ${remedy}`);
  }
  const state = (await orchestrator.get(id, signal))?.state;
  if (state === undefined)
    throw new PlatformError('sandbox_not_found', `the engine has no sandbox ${id}\n  try: svc orphan ls`);
  if (state === 'running' && !isForced) {
    const message = `sandbox ${id} runs\n  try: svc orphan rm -f ${id}`;
    throw new PlatformError('invalid_state_transition', message, { details: { state } });
  }
  await orchestrator.remove(id, signal);
}

/** Of these, those that are somebody's, removed ones included: their removal may be under way. */
async function knownIds(database: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const known = new Set<string>();
  for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
    for (const { id } of await findSandboxes(database, ids.slice(at, at + IDS_AT_ONCE))) known.add(id);
  }
  return known;
}
