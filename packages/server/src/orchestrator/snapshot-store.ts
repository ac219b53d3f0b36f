import type { EngineClient } from '@svc/engine/client';

/** The part of the orchestrator that keeps snapshots: the snapshot methods of the engine's client. */
export type SnapshotStore = Pick<
  EngineClient,
  'createSnapshot' | 'getSnapshot' | 'listSnapshots' | 'removeSnapshot'
>;
