import { readdirSync } from 'node:fs';
import { readKernelFile } from '../cgroup/kernel-file.ts';
import { killProcess } from '../cgroup/kill-process.ts';
import { untilDone } from '../cgroup/until-done.ts';
import type { HostCalls } from '../host/host-calls.ts';

/**
 * Kills the commands that still work on a start: the runtime's program and its forks, some of which leave the process group and outlive
 * the program. They all carry the bundle's folder on their command line until they are in the cgroup of the sandbox; before that
 * the helper claims the folder.
 */
export async function killUnfinishedStart(
  hostCalls: Pick<HostCalls, 'isClaimed'>,
  bundleFolder: string,
): Promise<void> {
  const mark = `bundle\0${bundleFolder}\0`;
  await untilDone('a start that was given up', async () => {
    if (await hostCalls.isClaimed(bundleFolder)) return false;
    const lines = processIds().map((pid) => ({ pid, line: readKernelFile(`/proc/${pid}/cmdline`) ?? '' }));
    const starters = lines.filter(({ line }) => line.includes(mark));
    // SAFETY: only the engine makes this folder, and its name is used once.
    for (const { pid } of starters) killProcess(pid);
    return starters.length === 0 && !lines.some(({ pid, line }) => line === '' && isBeingExecuted(pid));
  });
}

/** Whether a process has left one program and has not yet got the command line of the next: it could be any. */
function isBeingExecuted(pid: number): boolean {
  const stat = readKernelFile(`/proc/${pid}/stat`) ?? '';
  // The second field is the program's name in parentheses and may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [memoryBytes, argumentsEnd] = [fields[20], fields[46]];
  // Threads of the kernel and corpses have no memory.
  return memoryBytes !== undefined && memoryBytes !== '0' && argumentsEnd === '0';
}

function processIds(): number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}
