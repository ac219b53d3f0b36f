import { PlatformError } from '@svc/contract/errors';
import { runTool, ToolFailed } from '../host/run-tool.ts';

/** Exit codes of e2fsck, a bit mask; from 4 on errors are left uncorrected. */
const CORRECTED = [0, 1, 2, 3];

/**
 * Checks and repairs an unmounted disk that was not unmounted cleanly (the host crashed): first like at boot, then, where that gives up,
 * with all questions answered yes.
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
