import { readdirSync } from 'node:fs';
import { readKernelFile } from '../cgroup/kernel-file.ts';
import { killProcess } from '../cgroup/kill-process.ts';
import { untilDone } from '../cgroup/until-done.ts';

/**
 * Kills the commands that still work on a start: the runtime's program and its forks, some of which leave the process group and outlive
 * the program. They all carry the bundle's folder on their command line until they are in the cgroup of the sandbox.
 */
export async function killUnfinishedStart(bundleFolder: string): Promise<void> {
  const mark = `bundle\0${bundleFolder}\0`;
  await untilDone('a start that was given up', () => {
    const starters = processIds().filter((pid) => readKernelFile(`/proc/${pid}/cmdline`)?.includes(mark));
    // SAFETY: only the engine makes this folder, and its name is used once.
    for (const pid of starters) killProcess(pid);
    return starters.length === 0;
  });
}

function processIds(): number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}
