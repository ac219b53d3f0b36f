import { PlatformError } from '@svc/contract';
import type { CreateSnapshot, SnapshotView } from '@svc/contract/orchestrator';
import { FleetImages } from './fleet-images.ts';
import { FleetMembers, type Member } from './fleet-members.ts';
import { FleetNodes } from './fleet-nodes.ts';
import { FleetOrchestrator } from './fleet-orchestrator.ts';
import { FullNodes } from './fleet-placement.ts';
import { FleetVolumes } from './fleet-volumes.ts';
import { NodeFinder, type Finding } from './node-finder.ts';
import type { OrchestratorPorts } from './ports.ts';
import type { SnapshotStore } from './snapshot-store.ts';

const NO_SIGNAL = new AbortController().signal;

export interface FleetStore {
  /** The node in the row of a sandbox; see `Finding`. */
  readonly nodeOfSandbox: Finding['stored'];
}

/** The ports of several nodes together. What is on a node stays there; the calls about it go there. */
export function fleetPorts(list: readonly Member[], { nodeOfSandbox }: FleetStore): OrchestratorPorts {
  const members = new FleetMembers(list);
  const sandboxes = new NodeFinder(members, {
    stored: nodeOfSandbox,
    isThere: async ({ orchestrator }, id, signal) => (await orchestrator.get(id, signal)) !== undefined,
  });
  const volumes = new NodeFinder(members, {
    stored: unknown,
    isThere: async ({ volumeStore }, id, signal) =>
      await isFound('volume_not_found', volumeStore.volumeUsage(id, signal)),
  });
  const snapshots = new NodeFinder(members, {
    stored: unknown,
    isThere: async ({ snapshotStore }, id, signal) =>
      await isFound('snapshot_not_found', snapshotStore.getSnapshot(id, signal)),
  });
  return {
    orchestrator: new FleetOrchestrator({ members, full: new FullNodes(), volumes, snapshots }, sandboxes),
    imageStore: new FleetImages(members),
    volumeStore: new FleetVolumes(members, volumes),
    snapshotStore: fleetSnapshots(members, sandboxes, snapshots),
    nodes: new FleetNodes(members),
  };
}

/** Volumes and snapshots have no node in their rows: every node is asked. */
async function unknown(): Promise<undefined> {
  return await Promise.resolve(undefined);
}

async function isFound(
  code: 'volume_not_found' | 'snapshot_not_found',
  asked: Promise<unknown>,
): Promise<boolean> {
  try {
    await asked;
    return true;
  } catch (error) {
    if (PlatformError.is(error, code)) return false;
    throw error;
  }
}

/** A snapshot is on the node of its sandbox, and so are the sandboxes that are made from it. */
function fleetSnapshots(members: FleetMembers, sandboxes: NodeFinder, snapshots: NodeFinder): SnapshotStore {
  return {
    createSnapshot: async (request: CreateSnapshot, signal = NO_SIGNAL): Promise<SnapshotView> =>
      await sandboxes.call(
        request.sandboxId,
        'sandbox_not_found',
        async ({ snapshotStore }, node) => {
          const made = await snapshotStore.createSnapshot(request, signal);
          snapshots.note(request.id, node);
          return made;
        },
        signal,
      ),
    getSnapshot: async (id, signal = NO_SIGNAL) =>
      await snapshots.call(
        id,
        'snapshot_not_found',
        async ({ snapshotStore }) => await snapshotStore.getSnapshot(id, signal),
        signal,
      ),
    listSnapshots: async (signal = NO_SIGNAL) => {
      const { answers } = await members.ask(
        async ({ snapshotStore }, deadline) => await snapshotStore.listSnapshots(deadline),
        signal,
      );
      return answers.flatMap(({ answer }) => answer);
    },
    removeSnapshot: async (id, signal = NO_SIGNAL) => {
      const node = await snapshots.find(id, signal);
      if (node === undefined) return;
      await members.portsOf(node).snapshotStore.removeSnapshot(id, signal);
      snapshots.forget(id);
    },
  };
}
