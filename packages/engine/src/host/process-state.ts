import { readFile } from 'node:fs/promises';

/** What the kernel says of a process that lives (proc(5), stat). */
export interface ProcessState {
  /** One letter: `R` runs, `S` sleeps, `D` waits for a disk, `T` was stopped by a signal. */
  readonly state: string;
  /** In clock ticks since boot. Together with the pid it names one process for good. */
  readonly startTime: string;
  /** How long it has used a CPU so far. */
  readonly cpuTicks: number;
}

/** Undefined when there is no such process, and when it has ended and only its parent has not asked for its exit code. */
export async function readProcessState(pid: number): Promise<ProcessState | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The second field is the program's name in parentheses and may hold anything.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
  const [state = ''] = fields;
  if (state === '' || state === 'Z' || state === 'X') return undefined;
  return { state, startTime: fields[19] ?? '', cpuTicks: Number(fields[11]) + Number(fields[12]) };
}
