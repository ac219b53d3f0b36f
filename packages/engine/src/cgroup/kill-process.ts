import { isErrno } from '@svc/contract/errno';

/** Ends a process of the host; succeeds when it has ended by itself. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!isErrno(error, 'ESRCH')) throw error;
  }
}
