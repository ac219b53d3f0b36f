import type { OrchestratorDescription, PoolView, SpaceUser, SpaceView } from '@svc/contract/orchestrator';

/**
 * The part of the orchestrator that describes the hosts of sandboxes.
 * - `describe` says what they can do, and why they can run nothing.
 * - `storage` reports how full the disk of sandboxes and volumes is; `storageUsers` by what. While space is short,
 *   calls that take some fail with `insufficient_storage`; calls that read, stop and remove still work.
 * - `pool` reports which sandboxes are kept started for later callers, and how often one was used.
 * - When the orchestrator is away every call fails with `orchestrator_unreachable`.
 */
export interface Nodes {
  describe(signal: AbortSignal): Promise<OrchestratorDescription>;
  storage(signal: AbortSignal): Promise<SpaceView>;
  storageUsers(signal: AbortSignal): Promise<readonly SpaceUser[]>;
  pool(signal: AbortSignal): Promise<PoolView>;
}
