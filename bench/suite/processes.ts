import { readFileSync } from 'node:fs';

const KIB = 1024;
/** USER_HZ of Linux is 100. */
const MS_PER_TICK = 10;

export interface ProcessMemory {
  readonly pid: number;
  readonly name: string;
  /** PSS: private memory, and its share of shared memory. */
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
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return text.trim().split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** User and system time of a process since its start, by ticks of 10 ms. */
export function readCpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [user = 0, system = 0] = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return (user + system) * MS_PER_TICK;
}
