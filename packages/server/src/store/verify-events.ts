import type { Database } from './database.ts';
import { PRUNED_EVENT } from './prune-events.ts';
import { hashEvent, listEventsAfter, type EventRecord } from './events.ts';

/** Rows that are in memory at a time. */
const BATCH = 1000;

export interface ChainBreak {
  /**
   * - `changed`: the row does not have its own hash any more.
   * - `missing`: a sequence is left out.
   * - `replaced`: the row has its hash, but does not follow from the one before.
   * - `cut`: the last events are gone.
   * - `added`: there are events that the organization does not know of.
   */
  readonly kind: 'changed' | 'missing' | 'replaced' | 'cut' | 'added';
  readonly sequence: number;
  readonly message: string;
}

export interface ChainReport {
  /** How many events are as they were written, from the first one that is kept on, and those before it that were removed. */
  readonly intact: number;
  /** Hash of the last one of these. Kept elsewhere, it proves later whether the chain was rewritten as a whole. */
  readonly hash: string;
  /** The first one; null: the chain is whole. */
  readonly broken: ChainBreak | null;
}

/**
 * Follows the chain of an organization's events from the first to the last. Events that are appended meanwhile are
 * followed too, or left out; they break nothing.
 */
export async function verifyEvents(db: Database, organizationId: string): Promise<ChainReport> {
  const start = await findStart(db, organizationId);
  let { sequence: intact, hash } = start;
  let noted: string | null = null;
  for (;;) {
    const rows = await listEventsAfter(db, organizationId, intact, BATCH);
    for (const row of rows) {
      const broken = findBreak(row, intact + 1, hash);
      if (broken !== null) return { intact, hash, broken };
      intact += 1;
      hash = row.hash;
      if (row.event_type === PRUNED_EVENT)
        noted = (JSON.parse(row.payload) as { readonly hash: string }).hash;
    }
    if (rows.length < BATCH) break;
  }
  if (start.sequence > 0 && noted !== start.hash) {
    const message = `the events up to ${start.sequence} were not removed by the server: no later event says so`;
    return { intact, hash, broken: { kind: 'missing', sequence: start.sequence, message } };
  }
  return { intact, hash, broken: await compareWithHead(db, organizationId, intact, hash) };
}

/** The last event that was removed for its age. */
async function findStart(
  db: Database,
  organizationId: string,
): Promise<{ readonly sequence: number; readonly hash: string }> {
  const row = await db
    .selectFrom('organizations')
    .select(['pruned_sequence', 'pruned_hash'])
    .where('id', '=', organizationId)
    .executeTakeFirstOrThrow();
  return { sequence: Number(row.pruned_sequence), hash: row.pruned_hash };
}

function findBreak(row: EventRecord, expected: number, previousHash: string): ChainBreak | null {
  const sequence = Number(row.sequence);
  if (sequence !== expected) {
    const message = `event ${expected} is missing; the next one is ${sequence}`;
    return { kind: 'missing', sequence: expected, message };
  }
  if (hashEvent(row) !== row.hash) {
    return { kind: 'changed', sequence, message: `event ${sequence} (${row.id}) was changed` };
  }
  if (row.previous_hash !== previousHash) {
    const message = `event ${sequence} (${row.id}) does not follow from event ${sequence - 1}: one of them was replaced`;
    return { kind: 'replaced', sequence, message };
  }
  return null;
}

/** The organization's own record of its last event is read after the events, so it may only be ahead by new ones. */
async function compareWithHead(
  db: Database,
  organizationId: string,
  intact: number,
  hash: string,
): Promise<ChainBreak | null> {
  const head = await db
    .selectFrom('organizations')
    .select(['event_sequence', 'event_hash'])
    .where('id', '=', organizationId)
    .executeTakeFirstOrThrow();
  const last = Number(head.event_sequence);
  if (last < intact) {
    const message = `events after ${last} were not added by the server`;
    return { kind: 'added', sequence: last + 1, message };
  }
  if (last === intact && head.event_hash !== hash) {
    const message = `event ${intact} is not the one that the organization remembers as its last`;
    return { kind: 'replaced', sequence: intact, message };
  }
  if (last === intact) return null;
  const [next] = await listEventsAfter(db, organizationId, intact, 1);
  // Appended since the walk ended.
  if (next !== undefined) return findBreak(next, intact + 1, hash);
  return { kind: 'cut', sequence: intact + 1, message: `events ${intact + 1} to ${last} are gone` };
}
