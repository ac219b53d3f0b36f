import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { isErrno } from '@svc/contract/errno';

/** Within its cgroup a kernel weighs nine times as much as a process of the guest. */
const NICE = -10;
/** A thread inherits the priority of its creator, which may have been changed after it was listed. */
const MAX_ROUNDS = 8;

/**
 * Gives all threads of these processes, the kernel of a gVisor sandbox, priority over the processes that they run. Otherwise the kernel
 * waits behind the guest whose call it answers. Priorities count within the sandbox's cgroup only: other sandboxes lose nothing.
 */
export function raiseKernelPriority(pids: readonly number[]): void {
  for (const pid of pids) {
    for (let round = 0; round < MAX_ROUNDS && raiseThreads(pid); round++) continue;
  }
}

/** @returns whether a thread was changed, so that there may be more */
function raiseThreads(pid: number): boolean {
  return threadsOf(pid).map(raiseThread).includes(true);
}

function threadsOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return [];
    throw error;
  }
}

/** Linux has priorities of threads where POSIX has those of processes (setpriority(2)). */
function raiseThread(thread: number): boolean {
  try {
    if (getPriority(thread) <= NICE) return false;
    setPriority(thread, NICE);
    return true;
  } catch (error) {
    // It has ended, or the engine runs in a container without CAP_SYS_NICE: the sandbox is slower, and otherwise the same.
    if (['ESRCH', 'EACCES', 'EPERM'].includes(reasonOf(error))) return false;
    throw error;
  }
}

/** `node:os` has the reason in `info`, behind a code that is the same for all. */
function reasonOf(error: unknown): string {
  const { info } = error as { readonly info?: { readonly code?: string } };
  return info?.code ?? '';
}
