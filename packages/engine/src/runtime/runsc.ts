import { GVISOR_KERNEL_MIB, gvisorConfig } from './gvisor-config.ts';
import { OciRuntime } from './oci-runtime.ts';
import type { OciOptions } from './oci-runtime.ts';
import type { Runtime } from './runtime.ts';

/** Sandboxes that talk to gVisor's kernel instead of the host's, started with a runsc of 2024 or newer. */
export function runsc(options: OciOptions & { readonly program?: string }): Runtime {
  const program = options.program ?? 'runsc';
  return new OciRuntime(
    {
      name: 'runsc',
      isolation: 'gvisor',
      program,
      streams: 'null',
      configure: gvisorConfig,
      onStarted: ({ handle, memoryMib }) =>
        options.cgroups.raiseMemoryLimit(handle, (memoryMib + GVISOR_KERNEL_MIB) * 1024 * 1024),
      command: (handle, bundle) => {
        const settings = ['--root', bundle.stateFolder, '--log', bundle.logFile, '--log-format', 'json'];
        const verb = ['run', '-detach', '-bundle', bundle.folder, '-pid-file', bundle.pidFile];
        return [...WITHOUT_NET_SETTINGS, program, ...settings, ...FLAGS, ...verb, handle];
      },
    },
    options,
  );
}

const FLAGS = [
  // Needs no hardware; kvm is faster where it works and hangs where it does not.
  '--platform=systrap',
  '--network=sandbox',
  // What the guest writes belongs on its own disk, not in runsc's memory.
  '--overlay2=none',
  // svc-init dials the engine's socket; it cannot make sockets on the host.
  '--host-uds=open',
  '--cpu-num-from-quota',
];

/**
 * Recent kernels have /proc/sys/net/core/rmem_default in each network namespace; runsc takes its presence for the host's namespace and
 * refuses to start. In a mount namespace of its own, an empty folder covers it.
 * SAFETY: the script is constant; the runtime's command line is passed to it as arguments, unread.
 */
const COVER_NET_SETTINGS = 'mount -t tmpfs -o ro,size=4k none /proc/sys/net && exec "$@"';
const WITHOUT_NET_SETTINGS = [
  'unshare',
  '--mount',
  '--propagation',
  'slave',
  'sh',
  '-c',
  COVER_NET_SETTINGS,
  'sh',
];
