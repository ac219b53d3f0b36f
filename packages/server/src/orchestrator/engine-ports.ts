import type { EngineClient } from '@svc/engine/client';
import { LocalImageStore } from './local-image-store.ts';
import { LocalNodes } from './local-nodes.ts';
import { LocalOrchestrator } from './local-orchestrator.ts';
import type { OrchestratorPorts } from './ports.ts';

/** The ports of one engine. Volumes and snapshots are said in the same words there, so its client is their port. */
export function enginePorts(engine: EngineClient): OrchestratorPorts {
  return {
    orchestrator: new LocalOrchestrator(engine),
    imageStore: new LocalImageStore(engine),
    volumeStore: engine.volumes,
    snapshotStore: engine,
    nodes: new LocalNodes(engine),
  };
}
