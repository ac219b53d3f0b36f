import { readFileSync } from 'node:fs';
import { readKernelFile } from '../cgroup/kernel-file.ts';

/** Identifies one process of this host uniquely: ids are reused, and start times are relative to a boot. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string;
  readonly bootId: string;
}

/** Undefined when there is no such process, or it is a zombie. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const startTicks = startTicksOf(pid);
  return startTicks === undefined ? undefined : { pid, startTicks, bootId: bootId() };
}

export function isRunning(identity: ProcessIdentity): boolean {
  return startTicksOf(identity.pid) === identity.startTicks && identity.bootId === bootId();
}

export function writtenIdentity(identity: ProcessIdentity): string {
  return `${identity.pid} ${identity.startTicks} ${identity.bootId}\n`;
}

/** Undefined when the text is truncated, for instance by a crash. */
export function parseIdentity(text: string): ProcessIdentity | undefined {
  const match = /^(\d+) (\d+) ([0-9a-f-]{36})\n$/.exec(text);
  if (match?.[1] === undefined || match[2] === undefined || match[3] === undefined) return undefined;
  return { pid: Number(match[1]), startTicks: match[2], bootId: match[3] };
}

/** The processes whose parent is not in the list. */
export function eldestOf(pids: readonly number[]): readonly number[] {
  const all = new Set(pids);
  return pids.filter((pid) => !all.has(Number(statOf(pid)?.[1])));
}

function startTicksOf(pid: number): string | undefined {
  return statOf(pid)?.[19];
}

/** The fields of a live process's stat file (proc(5)), from its state on. */
function statOf(pid: number): readonly string[] | undefined {
  const stat = readKernelFile(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field is the program's name in parentheses and may contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const isDead = fields[0] === 'Z' || fields[0] === 'X';
  return isDead ? undefined : fields;
}

let knownBootId: string | undefined;

function bootId(): string {
  knownBootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  return knownBootId;
}
