import { PlatformError } from '@svc/contract';
import type { EngineHealth } from './engine-health.ts';

/** For calls that would promise what the engine must do. @throws PlatformError `orchestrator_unreachable` */
export function requireEngine(health: EngineHealth): void {
  const { current } = health;
  if (current.isHealthy) return;
  throw new PlatformError('orchestrator_unreachable', 'orchestrator unreachable', {
    details: { reason: current.reason },
  });
}
