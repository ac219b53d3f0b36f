import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract';
import type { Logger } from 'pino';
import type { NetworkDenial, Orchestrator } from '../orchestrator/orchestrator.ts';
import type { Database } from '../store/database.ts';
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
  readonly since: number;
  told: number;
  leftOut: number;
}

export interface DenialParts {
  readonly database: Database;
  readonly orchestrator: Pick<Orchestrator, 'denials'>;
  readonly logger: Logger;
}

/** Writes into the audit log what sandboxes tried and were kept from: the first few of each minute, and how many were left out. */
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
  const leftOut = admit(counts, `${sandboxId} ${type}`);
  if (leftOut === null) return;
  await inTransaction(db, async (transaction) => {
    const known = await getSandbox(transaction, sandboxId);
    if (known === undefined) return;
    await lockOrganization(transaction, known.organizationId);
    await recordSandboxEvent(transaction, type, known, null, { ...details, left_out: leftOut });
  });
}

/** How many were left out before this one; null: this one is left out too. */
function admit(counts: Map<string, Count>, key: string): number | null {
  if (counts.size > MOST_COUNTED) counts.clear();
  const now = performance.now();
  const before = counts.get(key);
  const isOver = before === undefined || now - before.since > MINUTE_MS;
  const count = isOver ? { since: now, told: 0, leftOut: before?.leftOut ?? 0 } : before;
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
