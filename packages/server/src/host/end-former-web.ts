import { setTimeout as delay } from 'node:timers/promises';
import { readProcessState } from '@svc/engine/client';
import type { Logger } from 'pino';
import { findWeb } from './pid-file.ts';

/** For the calls that it is at. It takes no new ones, and nobody can before it has ended. */
const GRACE_MS = 1000;
const LOOK_MS = 20;

/**
 * Ends the web-facing process of a supervisor that was killed: it ends by itself unless it hangs. Only for whoever holds the lock of the
 * folder, so that there is no other supervisor whose process it could be.
 */
export async function endFormerWeb(dataFolder: string, logger: Logger): Promise<void> {
  const pid = await findWeb(dataFolder);
  if (pid === undefined) return;
  const deadline = performance.now() + GRACE_MS;
  while ((await findWeb(dataFolder)) === pid) {
    const isFrozen = (await readProcessState(pid))?.state === 'T';
    if (isFrozen || performance.now() > deadline) {
      logger.warn({ pid, isFrozen }, 'the web-facing process of a former server is ended');
      return kill(pid);
    }
    await delay(LOOK_MS);
  }
}

function kill(pid: number): void {
  try {
    // SAFETY: noted by root together with the time it started, so it is ours and no other.
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended in this moment.
  }
}
