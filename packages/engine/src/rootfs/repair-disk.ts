import { PlatformError } from '@svc/contract/errors';
import { runTool, ToolFailed } from '../host/run-tool.ts';

/** e2fsck adds these up; from 4 on something is left uncorrected. */
const CORRECTED = [0, 1, 2, 3];

/**
 * Checks a disk that was not unmounted cleanly (the host crashed) and repairs it: first as at every boot, then, where that gives up, with
 * every question answered yes. The disk must not be mounted.
 */
export async function repairDisk(image: string, signal: AbortSignal): Promise<void> {
  if (await isCorrected(['-p', image], signal)) return;
  try {
    await runTool('e2fsck', ['-f', '-y', image], signal, CORRECTED);
  } catch (error) {
    if (!(error instanceof ToolFailed)) throw error;
    const message = 'The disk is damaged beyond repair; create the sandbox anew';
    throw new PlatformError('start_failed', message, { cause: error });
  }
}

async function isCorrected(args: readonly string[], signal: AbortSignal): Promise<boolean> {
  try {
    await runTool('e2fsck', args, signal, CORRECTED);
    return true;
  } catch (error) {
    if (error instanceof ToolFailed) return false;
    throw error;
  }
}
