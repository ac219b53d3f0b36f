import { PlatformError } from '@svc/contract';
import type { EngineHealth } from './engine-health.ts';

/**
 * For calls whose result depends on the engine.
 * @param remedy what the caller can do while the engine is away
 * @throws PlatformError `orchestrator_unreachable`
 */
export function requireEngine(health: EngineHealth, remedy?: string): void {
  const { current } = health;
  if (current.isHealthy) return;
  const reason = remedy === undefined ? current.reason : `${current.reason}; ${remedy}`;
  throw new PlatformError('orchestrator_unreachable', 'orchestrator unreachable', { details: { reason } });
}
