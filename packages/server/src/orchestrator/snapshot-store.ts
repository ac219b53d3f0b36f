import type { EngineClient } from '@svc/engine/client';

/** The part of the orchestrator that keeps snapshots: what the engine's client offers for them. */
export type SnapshotStore = Pick<
  EngineClient,
  'createSnapshot' | 'getSnapshot' | 'listSnapshots' | 'removeSnapshot'
>;
