import type { Cgroups } from '../cgroup/cgroups.ts';
import { readKernelFile } from '../cgroup/kernel-file.ts';

const LOOK_MS = 4;

/**
 * Lifts the pin of a sandbox to its CPUs while runsc starts it, for good: how much it may use is its quota's to say, where it runs the
 * scheduler's (docs/decisions/0032-places-of-sandboxes.md). It is there at first because runsc counts the CPUs that it shows inside.
 * Lifted once it has, since gVisor's kernel and its file server start side by side, each for some 50 ms; on one CPU one of them would
 * wait for the other. The function that is returned is to be called when runsc is done: at the latest then it is lifted.
 */
export function bootOnAllCpus(cgroups: Cgroups, handle: string): () => void {
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    try {
      if (isBooting(cgroups, handle)) cgroups.pin(handle, null);
      else timer = setTimeout(look, LOOK_MS).unref();
    } catch {
      // Only the start takes longer.
    }
  };
  look();
  return () => {
    clearTimeout(timer);
    cgroups.pin(handle, null);
  };
}

/** Its command line is complete when it is there, and says how many CPUs are shown. */
function isBooting(cgroups: Cgroups, handle: string): boolean {
  return cgroups
    .processIds(handle)
    .some((pid) => readKernelFile(`/proc/${pid}/cmdline`)?.startsWith('runsc-sandbox\0') === true);
}
