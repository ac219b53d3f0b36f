import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CgroupLayout } from '../cgroup/cgroup-layout.ts';
import { Cgroups } from '../cgroup/cgroups.ts';
import { readKernelFile } from '../cgroup/kernel-file.ts';
import type { OciOptions } from '../runtime/oci-runtime.ts';
import type { RuntimeWorld } from './runtime-world.ts';
import type { Runtime, RuntimeSpec } from '../runtime/runtime.ts';
import { INIT_PROGRAM, SandboxFiles } from './sandbox-files.ts';

export interface RealWorld extends RuntimeWorld {
  readonly cgroups: Cgroups;
  /** The runtime's own folder. */
  readonly folder: string;
  /** Kills it, like a crash of svc-host. */
  killHelpers(): void;
}

/** A real environment for an OCI runtime: namespaces, mounts and cgroups. */
export async function realWorld(createRuntime: (options: OciOptions) => Runtime): Promise<RealWorld> {
  const files = await SandboxFiles.create();
  const cgroups = new Cgroups();
  const options: OciOptions = {
    folder: join(files.folder, 'runtime'),
    cgroups,
    hostCalls: files.hostCalls,
    probe: {
      hostCalls: files.hostCalls,
      initProgram: INIT_PROGRAM,
      folder: join(files.folder, 'probes'),
      idBase: 3_000_000,
    },
  };
  return {
    cgroups,
    folder: options.folder,
    killHelpers: () => files.hostCalls.pids.forEach((pid) => process.kill(pid, 'SIGKILL')),
    open: () => createRuntime(options),
    spec: (changes) => files.spec(changes),
    leftovers: async (spec) => [
      ...processesOf(spec),
      ...cgroups.list().filter((handle) => handle === spec.handle),
      ...readdirSync(options.folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
        path.includes(spec.handle),
      ),
      ...(await belowMounts(cgroups.layout)).filter((path) => path.includes(spec.handle)),
    ],
    defer: (cleanup) => files.defer(cleanup),
    close: () => files[Symbol.asyncDispose](),
  };
}

/** Entries in the folders below the mounted cgroup trees, which the mounts hide. */
async function belowMounts({ trees }: CgroupLayout): Promise<readonly string[]> {
  const points = trees.map(({ mountpoint }) => mountpoint);
  // A tree with another mount below it cannot be unmounted; such a tree is never mounted directly on the file system of the host.
  const script = 'for point; do umount "$point" 2>/dev/null && find "$point"; done; true';
  const look = ['--mount', '--propagation', 'slave', 'sh', '-c', script, 'sh', ...points];
  return (await promisify(execFile)('unshare', look)).stdout.split('\n');
}

/** Host processes that run as a user of the sandbox, without zombies, or that name it. */
function processesOf({ handle, slot }: RuntimeSpec): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const status = readKernelFile(`/proc/${pid}/status`) ?? '';
      const uid = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? -1) - slot.idBase;
      const isCorpse = /^State:\s+[ZX]/m.test(status);
      const names = (readKernelFile(`/proc/${pid}/cmdline`) ?? '').includes(handle);
      return !isCorpse && ((uid >= 0 && uid < 65_536) || names);
    })
    .map((pid) => `process ${pid}: ${(readKernelFile(`/proc/${pid}/cmdline`) ?? '').replaceAll('\0', ' ')}`);
}
