import { readFileSync } from 'node:fs';
import { childrenOf } from './process-memory.ts';

/** USER_HZ of Linux is 100. */
const MS_PER_TICK = 10;
/** Fields 14 to 17 of `stat`, counted from behind the name: in the process and in the kernel, and the same of children it waited for. */
const FIRST_FIELD = 11;
const OF_ITSELF = 2;
const WITH_CHILDREN = 4;

/** Processor time of a process, by ticks of 10 ms. */
export function readCpuMs(pid: number): number {
  return sumOfFields(pid, OF_ITSELF);
}

/** Of a process and all below it, with the children that they have waited for. */
export function readTreeCpuMs(pid: number): number {
  return childrenOf(pid).reduce((sum, child) => sum + readTreeCpuMs(child), readUnlessGone(pid));
}

function readUnlessGone(pid: number): number {
  try {
    return sumOfFields(pid, WITH_CHILDREN);
  } catch {
    // The process has ended, and its time is counted in its parent.
    return 0;
  }
}

function sumOfFields(pid: number, count: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields
    .slice(FIRST_FIELD, FIRST_FIELD + count)
    .reduce((sum, ticks) => sum + Number(ticks) * MS_PER_TICK, 0);
}
