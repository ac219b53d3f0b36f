import { setTimeout as delay } from 'node:timers/promises';
import { SvcError, type Sandbox } from '@svc/sdk';
import { AT_REST } from './at-rest.ts';

const FIRST_POLL_MS = 50;
const LONGEST_POLL_MS = 1000;
const KILLED = 137;

/**
 * The code that the main command of a sandbox ends with: its own, 128 + n when signal n ended it, 0 when the sandbox was stopped.
 * Waits as long as it runs. @throws SvcError when it is unknown
 */
export async function mainExitCode(sandbox: Sandbox): Promise<number> {
  for (
    let pauseMs = FIRST_POLL_MS;
    !AT_REST.has(sandbox.status);
    pauseMs = Math.min(LONGEST_POLL_MS, pauseMs * 1.5)
  ) {
    await delay(pauseMs);
    await refresh(sandbox);
  }
  return codeOf(sandbox.info);
}

async function refresh(sandbox: Sandbox): Promise<void> {
  try {
    await sandbox.refresh();
  } catch (error) {
    if (!SvcError.is(error, 'sandbox_not_found')) throw error;
    const message = `Sandbox '${sandbox.name}' was removed when it ended, and with it how it ended`;
    throw new SvcError('sandbox_not_found', message, { cause: error });
  }
}

/** The server says it in a sentence. */
function codeOf({ name, status, last_failure_message: message }: Sandbox['info']): number {
  if (status === 'created')
    throw new SvcError('sandbox_not_running', `Sandbox '${name}' was never started`, { details: { status } });
  if (status === 'stopped') return 0;
  const { code, signal } =
    / exited with code (?<code>\d+)| ended by signal (?<signal>\d+)/.exec(message ?? '')?.groups ?? {};
  if (code !== undefined) return Number(code);
  if (signal !== undefined) return 128 + Number(signal);
  if (/out of memory/.test(message ?? '')) return KILLED;
  throw new SvcError('start_failed', `Sandbox '${name}' failed: ${message ?? 'for an unknown reason'}`);
}
