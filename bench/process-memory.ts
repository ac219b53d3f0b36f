import { readFileSync } from 'node:fs';

const KIB = 1024;
const MS_PER_TICK = 10;

export interface ProcessMemory {
  readonly pid: number;
  readonly name: string;
  /** What is its own, and its share of what it shares with others. */
  readonly pssBytes: number;
}

/** A process and all below it. */
export function readTree(pid: number): ProcessMemory[] {
  const own = readProcess(pid);
  if (own === undefined) return [];
  return [own, ...childrenOf(pid).flatMap(readTree)];
}

export function sumOf(processes: readonly ProcessMemory[]): number {
  return processes.reduce((sum, { pssBytes }) => sum + pssBytes, 0);
}

/** Of a process and all below it, with the children that they have waited for. Counted in ticks of 10 ms. */
export function readTreeCpuMs(pid: number): number {
  return childrenOf(pid).reduce((sum, child) => sum + readTreeCpuMs(child), readCpuMs(pid));
}

/** In the process and in the kernel: fields 14 to 17 of its `stat`. */
function readCpuMs(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * MS_PER_TICK, 0);
  } catch {
    return 0;
  }
}

/** Undefined when it is gone. */
function readProcess(pid: number): ProcessMemory | undefined {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    const script = words.find((word) => /\.[cm]?[jt]s$/.test(word)) ?? words[0] ?? '';
    const pssBytes = Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) * KIB;
    return { pid, name: script.split('/').slice(-2).join('/'), pssBytes };
  } catch {
    return undefined;
  }
}

function childrenOf(pid: number): number[] {
  try {
    // Those of all its threads: a child belongs to the one that made it.
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return text.trim().split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
