import { fleetPorts } from '../orchestrator/fleet-ports.ts';
import type { FleetStore } from '../orchestrator/fleet-ports.ts';
import type { OrchestratorPorts } from '../orchestrator/ports.ts';
import { FakeOrchestrator } from './fake-orchestrator.ts';
import { FakeSnapshotStore } from './fake-snapshot-store.ts';
import { FakeVolumeStore } from './fake-volume-store.ts';

/** A fleet whose nodes are in memory. Absent: rows say nothing about nodes. */
export function fakeFleet(
  names: readonly string[],
  nodeOfSandbox: FleetStore['nodeOfSandbox'] = async () => await Promise.resolve(undefined),
  orchestrators: readonly FakeOrchestrator[] = names.map(() => new FakeOrchestrator()),
): { readonly ports: OrchestratorPorts; readonly members: ReadonlyMap<string, FakeOrchestrator> } {
  const members = new Map<string, FakeOrchestrator>();
  const list = orchestrators.map((orchestrator, index) => {
    const name = names[index] ?? String(index);
    members.set(name, orchestrator);
    const ports = {
      orchestrator,
      imageStore: orchestrator,
      nodes: orchestrator,
      volumeStore: new FakeVolumeStore(),
      snapshotStore: new FakeSnapshotStore(),
    };
    return { name, ports };
  });
  return { ports: fleetPorts(list, { nodeOfSandbox }), members };
}
