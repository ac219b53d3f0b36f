import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract';
import type { NetworkDenial } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import type { Database } from '../store/database.ts';
import { hasEvent } from '../store/events.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { lockOrganization } from '../store/lock-organization.ts';
import { getSandbox } from '../store/sandboxes.ts';
import type { BackgroundTask } from '../tasks/background.ts';
import { recordSandboxEvent } from './sandbox-events.ts';

const RETRY_MS = 500;
const MINUTE_MS = 60_000;
/** Per kind and sandbox, so that a sandbox cannot flood the audit log. */
const MOST_PER_MINUTE = 10;
/** Limit of sandboxes that are counted; beyond it all counts are dropped. */
const MOST_COUNTED = 10_000;

interface Count {
  /** The minute of the clock, so that all servers leave out the same denials. */
  readonly minute: number;
  counted: number;
  leftOut: number;
}

export interface DenialParts {
  readonly database: Database;
  readonly orchestrator: Pick<Orchestrator, 'denials'>;
  readonly logger: Logger;
}

/**
 * Writes denied attempts of sandboxes into the audit log: the first few of each minute, and how many were left out. All servers of an
 * engine receive them; the first one writes the event, under an id that the others derive too.
 */
export function recordDenials({ database, orchestrator, logger }: DenialParts): BackgroundTask {
  const counts = new Map<string, Count>();
  return {
    run: async (signal) => {
      while (!signal.aborted) {
        try {
          for await (const denial of orchestrator.denials(signal)) await note(database, counts, denial);
        } catch (error) {
          // The reconciler reports an engine that is away.
          if (!signal.aborted && !PlatformError.is(error, 'orchestrator_unreachable'))
            logger.error({ err: error }, 'denied traffic could not be written down; it is tried again');
        }
        await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    },
  };
}

async function note(db: Database, counts: Map<string, Count>, denial: NetworkDenial): Promise<void> {
  const { sandboxId, type, details } = denial;
  const leftOut = admit(counts, `${sandboxId} ${type}`, Math.floor(Date.parse(denial.time) / MINUTE_MS));
  if (leftOut === null) return;
  const eventId = eventIdOf(denial);
  await inTransaction(db, async (transaction) => {
    const known = await getSandbox(transaction, sandboxId);
    if (known === undefined) return;
    await lockOrganization(transaction, known.organizationId);
    if (await hasEvent(transaction, eventId)) return;
    await recordSandboxEvent(transaction, type, known, null, { ...details, left_out: leftOut }, eventId);
  });
}

/** A UUID (version 8, custom) that every server derives from the same denial. */
function eventIdOf({ id, sandboxId, type }: NetworkDenial): string {
  const digits = createHash('sha256').update(`${sandboxId} ${type} ${id}`).digest('hex');
  const [, a, b, c, d, e] = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(digits) ?? [];
  return `${a}-${b}-8${c}-8${d}-${e}`;
}

/** How many were left out before this one; null: this one is left out too. */
function admit(counts: Map<string, Count>, key: string, minute: number): number | null {
  if (counts.size > MOST_COUNTED) counts.clear();
  const before = counts.get(key);
  const isOver = before === undefined || before.minute !== minute;
  const count = isOver ? { minute, counted: 0, leftOut: before?.leftOut ?? 0 } : before;
  counts.set(key, count);
  if (count.counted >= MOST_PER_MINUTE) {
    count.leftOut += 1;
    return null;
  }
  count.counted += 1;
  const { leftOut } = count;
  count.leftOut = 0;
  return leftOut;
}
