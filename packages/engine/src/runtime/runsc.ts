import { GVISOR_KERNEL_MIB, gvisorConfig } from './gvisor-config.ts';
import { OciRuntime } from './oci-runtime.ts';
import type { OciOptions } from './oci-runtime.ts';
import { CPU_PERIOD_US } from './resources.ts';
import type { Runtime } from './runtime.ts';

/** Sandboxes on gVisor's kernel instead of the host's, started with a runsc of 2024 or newer. */
export function runsc(options: OciOptions & { readonly program?: string }): Runtime {
  const program = options.program ?? 'runsc';
  return new OciRuntime(
    {
      name: 'runsc',
      isolation: 'gvisor',
      program,
      streams: 'null',
      hasKernel: true,
      // Recent kernels have rmem_default in each network namespace; runsc takes it for the host's own and refuses to start.
      cover: '/proc/sys/net',
      configure: gvisorConfig,
      onStarted: ({ handle, memoryMib, vcpus }) => {
        options.cgroups.raiseMemoryLimit(handle, (memoryMib + GVISOR_KERNEL_MIB) * 1024 * 1024);
        // A starting process keeps threads of gVisor's kernel busy on several CPUs for a moment.
        options.cgroups.allowBurst(handle, vcpus * CPU_PERIOD_US);
      },
      command: (handle, bundle) => {
        const settings = ['--root', bundle.stateFolder, '--log', bundle.logFile, '--log-format', 'json'];
        const verb = ['run', '-detach', '-bundle', bundle.folder, '-pid-file', bundle.pidFile];
        return [program, ...settings, ...FLAGS, ...verb, handle];
      },
    },
    options,
  );
}

const FLAGS = [
  // Needs no hardware support; kvm is faster where it works and hangs where it does not.
  '--platform=systrap',
  '--network=sandbox',
  // The guest's writes belong on its own disk, not in runsc's memory.
  '--overlay2=none',
  // svc-init dials the engine's socket; it cannot make sockets on the host.
  '--host-uds=open',
  // The number of CPUs of its quota, at least two.
  '--cpu-num-from-quota',
];
