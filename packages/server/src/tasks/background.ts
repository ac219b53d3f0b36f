import { pause } from '@svc/contract/node-pause';
import type { Logger } from 'pino';

/** Work that runs as long as the server. `run` resolves soon after the signal and never rejects. */
export interface BackgroundTask {
  run(signal: AbortSignal): Promise<void>;
}

/** Repeats something with pauses; a failure is logged, and the repetition goes on. */
export function repeatEvery(
  intervalMs: number,
  what: string,
  work: (signal: AbortSignal) => Promise<void>,
  logger: Logger,
): BackgroundTask {
  return {
    run: async (signal) => {
      while (!signal.aborted) {
        try {
          await work(signal);
        } catch (error) {
          if (!signal.aborted) logger.error({ err: error }, `${what} failed; it is tried again`);
        }
        await pause(intervalMs, signal);
      }
    },
  };
}
