import type { CgroupLayout } from '../cgroup/cgroup-layout.ts';
import { containerConfig } from './container-config.ts';
import { OciRuntime } from './oci-runtime.ts';
import type { OciOptions } from './oci-runtime.ts';
import type { Runtime } from './runtime.ts';

/** Containers that share the host's kernel, started with crun: runc's smaller and faster sibling. */
export function crun(options: OciOptions & { readonly program?: string }): Runtime {
  const program = options.program ?? 'crun';
  const prefix = withPlainCgroups(options.cgroups.layout);
  return new OciRuntime(
    {
      name: 'crun',
      isolation: 'container',
      program,
      // SAFETY: crun makes its streams property of the sandbox's root, who could then lock the host out of its own null device.
      streams: 'closed',
      configure: containerConfig,
      command: (handle, bundle) => {
        const settings = ['--root', bundle.stateFolder, '--log', bundle.logFile, '--log-format', 'json'];
        const verb = ['run', '--detach', '--bundle', bundle.folder, '--pid-file', bundle.pidFile];
        return [...prefix, program, '--cgroup-manager', 'cgroupfs', ...settings, ...verb, handle];
      },
    },
    options,
  );
}

/**
 * crun refuses a hybrid host whose version 2 tree has controllers. In a mount namespace without that tree it sees version 1 only.
 * SAFETY: the script is constant; the tree and the runtime's command line are passed to it as arguments, unread.
 */
function withPlainCgroups(layout: CgroupLayout): readonly string[] {
  const unified = layout.trees.find((tree) => tree.version === 2);
  if (layout.version === 2 || unified === undefined) return [];
  const script = 'umount "$0" && exec "$@"';
  return ['unshare', '--mount', '--propagation', 'slave', 'sh', '-c', script, unified.mountpoint];
}
