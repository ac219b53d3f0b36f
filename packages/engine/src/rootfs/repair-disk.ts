import { PlatformError } from '@svc/contract';
import { runTool } from './run-tool.ts';

/** e2fsck adds these up; from 4 on something is left uncorrected. */
const FIRST_FAILURE = 4;

/**
 * Checks a disk that was not unmounted cleanly (the host crashed) and repairs it: first as at every boot, then, where that gives up, with
 * every question answered yes. The disk must not be mounted.
 */
export async function repairDisk(image: string, signal: AbortSignal): Promise<void> {
  const careful = await runTool('e2fsck', ['-p', image]);
  if (careful.code < FIRST_FAILURE) return;
  signal.throwIfAborted();
  const thorough = await runTool('e2fsck', ['-f', '-y', image]);
  if (thorough.code < FIRST_FAILURE) return;
  throw new PlatformError('start_failed', 'The disk is damaged beyond repair; create the sandbox anew', {
    cause: new Error(thorough.output),
  });
}
