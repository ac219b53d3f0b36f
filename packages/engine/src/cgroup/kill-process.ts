import { hasErrorCode } from './error-code.ts';

/** Ends a process of the host; succeeds when it has ended by itself. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!hasErrorCode(error, 'ESRCH')) throw error;
  }
}
