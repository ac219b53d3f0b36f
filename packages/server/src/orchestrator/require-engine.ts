import { PlatformError } from '@svc/contract';
import type { EngineHealth } from './engine-health.ts';

/**
 * For calls whose result depends on the engine.
 * @param node of the sandbox that the call is about; absent or null: any node can do it
 * @param remedy what the caller can do while the engine is away
 * @throws PlatformError `orchestrator_unreachable`
 */
export function requireEngine(health: EngineHealth, remedy?: string, node: string | null = null): void {
  const problem = health.problemOf(node);
  if (problem === null) return;
  const reason = remedy === undefined ? problem : `${problem}; ${remedy}`;
  throw new PlatformError('orchestrator_unreachable', 'orchestrator unreachable', { details: { reason } });
}
