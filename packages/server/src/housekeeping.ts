import type { Logger } from 'pino';
import { FAILURE_MS } from './access/sign-in.ts';
import { repeatEvery, type BackgroundTask } from './tasks/background.ts';
import type { RestSettings } from './rest-settings.ts';
import { forgetContextsOfEnded } from './store/code-contexts.ts';
import { followClock } from './store/clocks.ts';
import type { Database } from './store/database.ts';
import { FILE_CHANGE_CHECK_MS, recordLostChanges } from './store/file-changes.ts';
import { forgetOldKeys } from './store/idempotency.ts';
import { forgetOfRemoved } from './store/processes.ts';
import { forgetOldSignIns } from './store/sessions.ts';
import { pruneEvents } from './store/prune-events.ts';
import { pruneDeliveries } from './store/webhook-deliveries.ts';
import { forgetFormerSecrets } from './store/webhooks.ts';

const FORGET_INTERVAL_MS = 60 * 60_000;
/** Counted from the removal of their sandbox. */
const KEEP_PROCESSES_MS = 30 * 24 * 60 * 60_000;
const KEEP_DELIVERIES_MS = 7 * 24 * 60 * 60_000;
const CLOCK_CHECK_MS = 1000;

export interface HousekeepingParts {
  readonly database: Database;
  readonly restSettings: Pick<RestSettings, 'keepEventsMs'>;
  readonly logger: Logger;
}

/** Tasks that delete old rows; docs/operating/retention.md says what is kept. */
export function housekeeping({
  database,
  restSettings,
  logger,
}: HousekeepingParts): readonly BackgroundTask[] {
  const { keepEventsMs } = restSettings;
  const forget = (what: string, work: (signal: AbortSignal) => Promise<void>) =>
    repeatEvery(FORGET_INTERVAL_MS, `forgetting old ${what}`, work, logger);
  return [
    forget('idempotency keys', () => forgetOldKeys(database)),
    forget('processes', () => forgetOfRemoved(database, ago(KEEP_PROCESSES_MS))),
    forget('sign-ins', () => forgetOldSignIns(database, ago(FAILURE_MS))),
    forget('code contexts', () => forgetContextsOfEnded(database)),
    forget('secrets of webhooks', () => forgetFormerSecrets(database)),
    forget('deliveries', (signal) => pruneDeliveries(database, ago(KEEP_DELIVERIES_MS), signal)),
    ...(keepEventsMs === null
      ? []
      : [forget('events', (signal) => pruneEvents(database, ago(keepEventsMs), signal))]),
    repeatEvery(FILE_CHANGE_CHECK_MS, 'telling of lost changes', () => recordLostChanges(database), logger),
    repeatEvery(CLOCK_CHECK_MS, 'following the clock', () => followClock(database), logger),
  ];
}

function ago(milliseconds: number): string {
  return new Date(Date.now() - milliseconds).toISOString();
}
