import { readFileSync } from 'node:fs';

/** State of a live process, from the kernel (proc(5), stat). */
export interface ProcessState {
  /** Name of its program, at most 15 characters. */
  readonly name: string;
  readonly parent: number;
  /** One letter: `R` runs, `S` sleeps, `D` waits for a disk, `T` was stopped by a signal. */
  readonly state: string;
  /** In clock ticks since boot. Together with the pid it identifies a process uniquely. */
  readonly startTime: string;
  /** CPU time used so far. */
  readonly cpuTicks: number;
}

/**
 * Undefined when there is no such process, or when it is a zombie. Synchronous: the kernel
 * answers at once, also for a process that hangs; five round trips through another thread would take longer.
 */
export function readProcessState(pid: number): ProcessState | undefined {
  const stat = readStat(pid);
  // The second field is the program's name in parentheses and may contain any character.
  const nameEnd = stat?.lastIndexOf(')') ?? -1;
  const fields = stat?.slice(nameEnd + 2).split(' ') ?? [];
  const [state = '', parent] = fields;
  if (stat === undefined || state === '' || state === 'Z' || state === 'X') return undefined;
  const name = stat.slice(stat.indexOf('(') + 1, nameEnd);
  const cpuTicks = Number(fields[11]) + Number(fields[12]);
  return { name, parent: Number(parent), state, startTime: fields[19] ?? '', cpuTicks };
}

function readStat(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
}
