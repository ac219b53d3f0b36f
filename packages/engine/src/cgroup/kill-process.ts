import { isErrno } from '@svc/contract/errno';

/** Ends a process of the host; succeeds when it has exited already. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!isErrno(error, 'ESRCH')) throw error;
  }
}
