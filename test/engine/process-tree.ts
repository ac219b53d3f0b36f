import { readdirSync, readFileSync } from 'node:fs';

/** What runs below a process, as it is seen from outside: each of them may end while it is looked at, and is then not there. */
export function childrenOf(pid: number): number[] {
  return tasksOf(pid)
    .flatMap((task) => readProc(`/proc/${pid}/task/${task}/children`).trim().split(' '))
    .filter((child) => child !== '')
    .map(Number);
}

export function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

/** The words that it was started with. */
export function commandOf(pid: number): string[] {
  return readProc(`/proc/${pid}/cmdline`).split('\0').slice(0, -1);
}

export function isAlive(pid: number): boolean {
  return readProc(`/proc/${pid}/cmdline`) !== '';
}

function tasksOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    // It has ended meanwhile.
    return [];
  }
}

function readProc(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // It has ended meanwhile.
    return '';
  }
}
