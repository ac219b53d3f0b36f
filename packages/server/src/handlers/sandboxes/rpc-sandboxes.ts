import type { Call, Handlers } from '../../dispatch/dispatch.ts';
import { createActorOfCaller } from '../../access/actor-of-caller.ts';
import { isOperator } from '../../access/caller.ts';
import type { Lifecycle } from '../../sandboxes/lifecycle.ts';
import type { Database } from '../../store/database.ts';
import type { Asker } from '../../store/sandboxes.ts';
import { readConfig } from './sandbox-spec.ts';
import { abortable } from '@svc/contract/async';
import { inWordsOfConfig } from './words-of-config.ts';

export function sandboxHandlers(
  database: Database,
  lifecycle: Lifecycle,
): Pick<Handlers, 'sandbox.start' | 'sandbox.stop'> {
  const actorOf = createActorOfCaller(database);
  const askerOf = async ({ caller, requestId }: Call): Promise<Asker> => ({
    actor: await actorOf(caller),
    requestId,
    sourceAddress: null,
  });
  return {
    'sandbox.start': async ({ sandbox, config }, call) => {
      const { namespace, onProgress, signal } = call;
      try {
        const wanted = readConfig(sandbox, config ?? {}, { hasHostPaths: isOperator(call.caller) });
        const asker = await askerOf(call);
        // A caller that goes away does not leave a sandbox half-started: the start goes on without it.
        await abortable(lifecycle.start(namespace, sandbox, wanted, asker, onProgress), signal);
      } catch (error) {
        throw inWordsOfConfig(error);
      }
      return `Sandbox ${sandbox} started successfully`;
    },
    'sandbox.stop': async ({ sandbox }, call) => {
      await abortable(lifecycle.stop(call.namespace, sandbox, await askerOf(call)), call.signal);
      return `Sandbox ${sandbox} stopped successfully`;
    },
  };
}
