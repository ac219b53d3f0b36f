import type { ImageStore } from './image-store.ts';
import type { Nodes } from './nodes.ts';
import type { Orchestrator } from './orchestrator.ts';
import type { SnapshotStore } from './snapshot-store.ts';
import type { VolumeStore } from './volume-store.ts';

/** The ports of one orchestrator: sandboxes, and what else its hosts keep. */
export interface OrchestratorPorts {
  readonly orchestrator: Orchestrator;
  readonly imageStore: ImageStore;
  readonly volumeStore: VolumeStore;
  readonly snapshotStore: SnapshotStore;
  readonly nodes: Nodes;
}
