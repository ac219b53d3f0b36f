import type { EndingView } from '@svc/contract/orchestrator';
import type { EngineRecord } from './record.ts';
import type { Run } from './run.ts';

/** The properties of a sandbox that deadlines depend on. */
interface Lived {
  readonly record: EngineRecord;
  readonly run: Pick<Run, 'idleMs'> | undefined;
}

/** The end of a sandbox is announced this long before, or at half of its lifetime if that is shorter. */
const ANNOUNCED_MS = 60_000;

/** The deadline that a running sandbox has passed; undefined when it has passed none. */
export function overdue(sandbox: Lived, now: number): EndingView['reason'] | undefined {
  return endsOf(sandbox, now).find(({ leftMs }) => leftMs <= 0)?.reason;
}

/** The upcoming end of a sandbox, unless its lifetime is changed or it is used. */
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
