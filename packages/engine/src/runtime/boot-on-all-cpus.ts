import type { Cgroups } from '../cgroup/cgroups.ts';
import { readKernelFile } from '../cgroup/kernel-file.ts';

const LOOK_MS = 4;

/**
 * Lifts the pin of a sandbox to its CPUs while runsc starts it. gVisor's kernel and its file server start side by side, each for some
 * 50 ms; on one CPU one of them waits for the other. runsc counts the CPUs that are shown inside before it starts the kernel, so the pin
 * is lifted once that is there. The function that is returned puts it back: to be called when runsc is done, and nothing of the caller
 * runs yet.
 */
export function bootOnAllCpus(cgroups: Cgroups, handle: string): () => void {
  let own: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    try {
      if (isBooting(cgroups, handle)) lift();
      else timer = setTimeout(look, LOOK_MS).unref();
    } catch {
      // Only the start takes longer.
    }
  };
  const lift = () => {
    own = cgroups.cpus(handle);
    cgroups.pin(handle, null);
  };
  look();
  return () => {
    clearTimeout(timer);
    if (own !== undefined) cgroups.pin(handle, own);
  };
}

/** Its command line is complete when it is there, and says how many CPUs are shown. */
function isBooting(cgroups: Cgroups, handle: string): boolean {
  return cgroups
    .processIds(handle)
    .some((pid) => readKernelFile(`/proc/${pid}/cmdline`)?.startsWith('runsc-sandbox\0') === true);
}
