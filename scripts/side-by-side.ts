import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

export type Job = () => Promise<void>;

interface Width {
  readonly min: number;
  readonly max: number;
  readonly lookEveryMs?: number;
  /** The part of all processors that was idle since the last call. */
  readonly idleShare?: () => number;
}

const LOOK_EVERY_MS = 500;
/** One more job begins when this part of all processors was idle. */
const ENOUGH_IDLE = 0.25;

/**
 * Runs the jobs in their order, `min` at a time, and up to `max` while processors are idle: some tests wait most of the time, others
 * compute.
 */
export async function runSideBySide(
  jobs: readonly Job[],
  { min, max, lookEveryMs = LOOK_EVERY_MS, idleShare = measureIdle() }: Width,
): Promise<void> {
  const waiting = [...jobs];
  const running = new Set<Promise<void>>();
  let lookAt = performance.now() + lookEveryMs;
  while (waiting.length > 0) {
    let width = min;
    if (performance.now() >= lookAt) {
      // What begins now shows at the next look.
      lookAt = performance.now() + lookEveryMs;
      if (idleShare() >= ENOUGH_IDLE) width = Math.max(min, Math.min(max, running.size + 1));
    }
    for (const job of waiting.splice(0, Math.max(0, width - running.size))) {
      const done = job().finally(() => running.delete(done));
      running.add(done);
    }
    await Promise.race([...running, delay(lookEveryMs)]);
  }
  await Promise.all(running);
}

/** Waiting for a disk does not count as idle. */
function measureIdle(): () => number {
  let last = readTimes();
  return () => {
    const before = last;
    last = readTimes();
    return (last.idleMs - before.idleMs) / Math.max(1, last.allMs - before.allMs);
  };
}

function readTimes(): { readonly idleMs: number; readonly allMs: number } {
  let [idleMs, allMs] = [0, 0];
  for (const { times } of cpus()) {
    idleMs += times.idle;
    allMs += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return { idleMs, allMs };
}
