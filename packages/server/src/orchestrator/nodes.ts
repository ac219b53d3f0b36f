import type {
  NodeReport,
  OfNode,
  OrchestratorDescription,
  PoolView,
  SpaceUser,
  SpaceView,
} from '@svc/contract/orchestrator';

/**
 * The part of the orchestrator that describes the hosts of sandboxes.
 * - `describe` says what they can do together, and why they can run nothing.
 * - `listNodes` says the same of each, and which are away. The only node of an orchestrator has no name.
 * - `storage` reports how full the disks of sandboxes and volumes are; `storageUsers` by what. While space is short,
 *   calls that take some fail with `insufficient_storage`; calls that read, stop and remove still work.
 * - `pool` reports which sandboxes are kept started for later callers, and how often one was used.
 * - `storage`, `storageUsers` and `pool` leave out nodes that are away. When all are away every call fails with
 *   `orchestrator_unreachable`.
 */
export interface Nodes {
  describe(signal: AbortSignal): Promise<OrchestratorDescription>;
  listNodes(signal: AbortSignal): Promise<readonly NodeReport[]>;
  storage(signal: AbortSignal): Promise<readonly OfNode<SpaceView>[]>;
  storageUsers(signal: AbortSignal): Promise<readonly SpaceUser[]>;
  pool(signal: AbortSignal): Promise<readonly OfNode<PoolView>[]>;
}
