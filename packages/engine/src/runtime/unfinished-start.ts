import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { readKernelFile } from '../cgroup/kernel-file.ts';
import { killProcess } from '../cgroup/kill-process.ts';
import { untilDone } from '../cgroup/until-done.ts';
import type { HostCalls } from '../host/host-calls.ts';

const LOOK_MS = 20;

type Means = Pick<HostCalls, 'isClaimed'>;

/** Kills the commands of an unfinished start. */
export async function killUnfinishedStart(hostCalls: Means, bundleFolder: string): Promise<void> {
  await untilDone('a start that was given up', async () => {
    const { pids, isSure } = await findStarters(hostCalls, bundleFolder);
    // SAFETY: only the engine creates this folder, and its name is never reused.
    for (const pid of pids) killProcess(pid);
    return isSure && pids.length === 0;
  });
}

/** Resolves when all commands of a start have ended, also those of an earlier engine. */
export async function whenStartEnded(
  hostCalls: Means,
  bundleFolder: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const { pids, isSure } = await findStarters(hostCalls, bundleFolder);
    if (isSure && pids.length === 0) return;
    await delay(LOOK_MS, undefined, { signal });
  }
}

/**
 * The commands of a start: the runtime's program and its forks, some of which leave the process group and outlive the program. They have
 * the bundle's folder on their command line until they enter the cgroup of the sandbox; before that the helper claims the folder. `isSure`
 * is true when no other process can become one.
 */
async function findStarters(
  hostCalls: Means,
  bundleFolder: string,
): Promise<{ readonly pids: readonly number[]; readonly isSure: boolean }> {
  if (await hostCalls.isClaimed(bundleFolder)) return { pids: [], isSure: false };
  const mark = `bundle\0${bundleFolder}\0`;
  const lines = processIds().map((pid) => ({ pid, line: readKernelFile(`/proc/${pid}/cmdline`) ?? '' }));
  const pids = lines.filter(({ line }) => line.includes(mark)).map(({ pid }) => pid);
  return { pids, isSure: !lines.some(({ pid, line }) => line === '' && isBeingExecuted(pid)) };
}

/** Whether a process is inside execve, between two programs, and its command line is not known yet. */
function isBeingExecuted(pid: number): boolean {
  const stat = readKernelFile(`/proc/${pid}/stat`) ?? '';
  // The second field is the program's name in parentheses and may contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [memoryBytes, argumentsEnd] = [fields[20], fields[46]];
  // Kernel threads and zombies have no memory.
  return memoryBytes !== undefined && memoryBytes !== '0' && argumentsEnd === '0';
}

function processIds(): number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}
