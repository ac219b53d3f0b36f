import type { OrchestratorDescription, PoolView, SpaceView } from '@svc/contract/orchestrator';

const GIB = 1024 ** 3;

export const FAKE_POOL: PoolView = { max: 3, waiting: [], handedOut: 0, missed: 0, givenBack: 0 };

/** What the host of a fake orchestrator says of itself. */
export function describeFake(sandboxes: number): OrchestratorDescription {
  const classes = [{ isolation: 'container', runtime: 'fake', isUsable: true, reason: 'version fake' }];
  return { version: 'fake', isolation: 'container', problem: null, classes, sandboxes };
}

export function fakeSpace(isShort: boolean): SpaceView {
  const bytes = { totalBytes: 100 * GIB, freeBytes: 50 * GIB, reserveBytes: GIB, ballastBytes: 0 };
  return { ...bytes, promisedBytes: 0, owedBytes: 0, isShort, fault: null };
}
