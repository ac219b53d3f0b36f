import type { CgroupLayout } from '../cgroup/cgroup-layout.ts';
import { containerConfig } from './container-config.ts';
import { OciRuntime } from './oci-runtime.ts';
import type { OciOptions } from './oci-runtime.ts';
import type { Runtime } from './runtime.ts';

/** Containers that share the host's kernel, started with crun: runc's smaller and faster sibling. */
export function crun(options: OciOptions & { readonly program?: string }): Runtime {
  const program = options.program ?? 'crun';
  const cover = unifiedTree(options.cgroups.layout);
  return new OciRuntime(
    {
      name: 'crun',
      isolation: 'container',
      program,
      // SAFETY: crun makes its streams property of the sandbox's root, who could then lock the host out of its own null device.
      streams: 'closed',
      ...(cover === undefined ? {} : { cover }),
      configure: containerConfig,
      command: (handle, bundle) => {
        const settings = ['--root', bundle.stateFolder, '--log', bundle.logFile, '--log-format', 'json'];
        const verb = ['run', '--detach', '--bundle', bundle.folder, '--pid-file', bundle.pidFile];
        return [program, '--cgroup-manager', 'cgroupfs', ...settings, ...verb, handle];
      },
    },
    options,
  );
}

/** crun refuses a hybrid host whose version 2 tree has controllers. With that tree covered it sees only version 1. */
function unifiedTree({ version, trees }: CgroupLayout): string | undefined {
  return version === 2 ? undefined : trees.find((tree) => tree.version === 2)?.mountpoint;
}
