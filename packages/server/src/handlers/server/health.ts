import { PlatformError } from '@svc/contract';
import type { Handlers } from '../../dispatch/dispatch.ts';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';

export const HEALTHY_MESSAGE = 'Service is healthy';

export function healthHandlers(health: EngineHealth): Pick<Handlers, 'health.get'> {
  return {
    'health.get': async () => {
      const { current } = health;
      if (current.isHealthy) return await Promise.resolve({ message: HEALTHY_MESSAGE });
      throw new PlatformError('unavailable', `Service cannot run sandboxes: ${current.reason}`);
    },
  };
}
