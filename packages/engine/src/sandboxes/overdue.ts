import type { EndingView } from '../client/engine-api.ts';
import type { EngineRecord } from './record.ts';
import type { Run } from './run.ts';

/** What is looked at of a sandbox. */
interface Lived {
  readonly record: EngineRecord;
  readonly run: Pick<Run, 'idleMs'> | undefined;
}

/** How long before its end a sandbox is known to end, unless half of its whole time is shorter. */
const ANNOUNCED_MS = 60_000;

/** Why a sandbox that runs has run long enough; undefined when it has not. */
export function overdue(sandbox: Lived, now: number): EndingView['reason'] | undefined {
  return endsOf(sandbox, now).find(({ leftMs }) => leftMs <= 0)?.reason;
}

/** The end of a sandbox that comes soon unless somebody changes its lifetime, or uses it. */
export function endingOf(sandbox: Lived, now: number): EndingView | null {
  const soon = endsOf(sandbox, now).filter(
    ({ leftMs, wholeMs }) => leftMs <= Math.min(ANNOUNCED_MS, wholeMs / 2),
  );
  const [first] = soon.toSorted((one, other) => one.leftMs - other.leftMs);
  return first === undefined
    ? null
    : { reason: first.reason, at: new Date(now + first.leftMs).toISOString() };
}

interface End {
  readonly reason: EndingView['reason'];
  readonly leftMs: number;
  readonly wholeMs: number;
}

function endsOf({ record, run }: Lived, now: number): readonly End[] {
  if (record.state !== 'running' || run === undefined || record.run === null) return [];
  const { max_duration_secs: max, idle_timeout_secs: idle } = record.spec.lifecycle ?? {};
  const ends: End[] = [];
  if (typeof max === 'number') {
    const leftMs = Date.parse(record.run.startedAt) + max * 1000 - now;
    ends.push({ reason: 'max_duration', leftMs, wholeMs: max * 1000 });
  }
  if (typeof idle === 'number')
    ends.push({ reason: 'idle_timeout', leftMs: idle * 1000 - run.idleMs(), wholeMs: idle * 1000 });
  return ends;
}
