import { PlatformError } from '@svc/contract';
import type { Handlers } from '../../dispatch/dispatch.ts';

export const HEALTHY_MESSAGE = 'Service is healthy';

/** Why the server cannot do its work, according to the last check; null: it can. */
export type ServiceProblem = () => string | null;

export function healthHandlers(problem: ServiceProblem): Pick<Handlers, 'health.get'> {
  return {
    'health.get': async () => {
      const reason = problem();
      if (reason === null) return await Promise.resolve({ message: HEALTHY_MESSAGE });
      throw new PlatformError('unavailable', unhealthyMessage(reason));
    },
  };
}

export function unhealthyMessage(reason: string): string {
  return `Service cannot run sandboxes: ${reason}`;
}
