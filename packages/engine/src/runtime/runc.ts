import { containerConfig } from './container-config.ts';
import { OciRuntime } from './oci-runtime.ts';
import type { OciOptions } from './oci-runtime.ts';
import type { Runtime } from './runtime.ts';

/** Containers that share the host's kernel, started with runc 1.1 or newer. */
export function runc(options: OciOptions & { readonly program?: string }): Runtime {
  const program = options.program ?? 'runc';
  return new OciRuntime(
    {
      name: 'runc',
      isolation: 'container',
      program,
      streams: 'null',
      configure: containerConfig,
      command: (handle, bundle) => {
        const settings = ['--root', bundle.stateFolder, '--log', bundle.logFile, '--log-format', 'json'];
        const verb = ['run', '--detach', '--bundle', bundle.folder, '--pid-file', bundle.pidFile];
        return [program, ...settings, ...verb, handle];
      },
    },
    options,
  );
}
