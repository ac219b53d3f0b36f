import { readFileSync } from 'node:fs';

/** What the kernel says of a process that lives (proc(5), stat). */
export interface ProcessState {
  /** Of its program, at most 15 characters. */
  readonly name: string;
  readonly parent: number;
  /** One letter: `R` runs, `S` sleeps, `D` waits for a disk, `T` was stopped by a signal. */
  readonly state: string;
  /** In clock ticks since boot. Together with the pid it names one process for good. */
  readonly startTime: string;
  /** How long it has used a CPU so far. */
  readonly cpuTicks: number;
}

/**
 * Undefined when there is no such process, and when it has ended and only its parent has not asked for its exit code. The kernel
 * answers at once, also for a process that hangs; five turns of another thread would take longer.
 */
export function readProcessState(pid: number): ProcessState | undefined {
  const stat = readStat(pid);
  // The second field is the program's name in parentheses and may hold anything.
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
