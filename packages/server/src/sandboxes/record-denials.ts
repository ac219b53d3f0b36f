import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract';
import type { Logger } from 'pino';
import type { NetworkDenial, Orchestrator } from '../orchestrator/orchestrator.ts';
import type { Database } from '../store/database.ts';
import { hasEvent } from '../store/events.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { lockOrganization } from '../store/lock-organization.ts';
import { getSandbox } from '../store/sandboxes.ts';
import type { BackgroundTask } from '../tasks/background.ts';
import { recordSandboxEvent } from './sandbox-events.ts';

const RETRY_MS = 500;
const MINUTE_MS = 60_000;
/** Of one kind and one sandbox. An audit log is no place for a sandbox to write what it likes. */
const MOST_PER_MINUTE = 10;
/** Sandboxes that are counted at once; then all are forgotten, and counted anew. */
const MOST_COUNTED = 10_000;

interface Count {
  /** Minutes of the clock, so that servers which hear the same leave out the same. */
  readonly minute: number;
  told: number;
  leftOut: number;
}

export interface DenialParts {
  readonly database: Database;
  readonly orchestrator: Pick<Orchestrator, 'denials'>;
  readonly logger: Logger;
}

/**
 * Writes into the audit log what sandboxes tried and were kept from: the first few of each minute, and how many were left out. Every
 * server of an engine hears of it; whoever is first writes it down, under an id that the others find there.
 */
export function recordDenials({ database, orchestrator, logger }: DenialParts): BackgroundTask {
  const counts = new Map<string, Count>();
  return {
    run: async (signal) => {
      while (!signal.aborted) {
        try {
          for await (const denial of orchestrator.denials(signal)) await note(database, counts, denial);
        } catch (error) {
          // Whoever follows changes says that the engine is away.
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

/** A UUID (version 8: of one's own making) that every server makes of the same denial. */
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
  const count = isOver ? { minute, told: 0, leftOut: before?.leftOut ?? 0 } : before;
  counts.set(key, count);
  if (count.told >= MOST_PER_MINUTE) {
    count.leftOut += 1;
    return null;
  }
  count.told += 1;
  const { leftOut } = count;
  count.leftOut = 0;
  return leftOut;
}
