import type { Handlers } from '../dispatch/dispatch.ts';
import type { Lifecycle } from '../lifecycle/lifecycle.ts';
import { toSpec } from './sandbox-spec.ts';
import { waitFor } from './wait-for.ts';

export function sandboxHandlers(lifecycle: Lifecycle): Pick<Handlers, 'sandbox.start' | 'sandbox.stop'> {
  return {
    'sandbox.start': async ({ sandbox, config }, { namespace, onProgress, signal }) => {
      const image = config?.image ?? null;
      const wanted = image === null || config === null ? undefined : toSpec(image, config ?? {});
      // A caller that goes away does not leave a sandbox half-started: the start goes on without it.
      await waitFor(lifecycle.start(namespace, sandbox, wanted, onProgress), signal);
      return `Sandbox ${sandbox} started successfully`;
    },
    'sandbox.stop': async ({ sandbox }, { namespace, signal }) => {
      await waitFor(lifecycle.stop(namespace, sandbox), signal);
      return `Sandbox ${sandbox} stopped successfully`;
    },
  };
}
