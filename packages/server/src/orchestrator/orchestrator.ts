import type { ChannelClient, SandboxSpec } from '@svc/contract';

/**
 * Runs sandboxes somewhere. Implemented by the engine of this host and, for tests, in memory.
 * - Ids are chosen by the caller. `create` with an id that exists is `name_already_exists`.
 * - `create` makes a stopped sandbox; the image is fetched when it is missing. A failed `create` leaves nothing.
 * - `start` answers when the sandbox runs and its channel answers. Starting a running one changes nothing.
 * - `stop` answers when everything of the run is released; the disk is kept. Stopping a stopped one succeeds.
 * - `remove` is legal in every state and succeeds when the sandbox is already gone.
 * - `start`, `stop` and `openChannel` of an unknown id are `sandbox_not_found`.
 * - `openChannel` of a sandbox that does not run is `sandbox_not_running`.
 * - `metrics` reports running sandboxes only.
 * - Sandboxes outlive the caller and the orchestrator's own process: `list` finds them again.
 * - `changes` yields the id of every sandbox that changed since the call (perhaps also before it), and null when any may
 *   have. It throws when the orchestrator goes away; a caller then asks again, and lists.
 * - When the orchestrator is away every call fails with `orchestrator_unreachable`.
 */
export interface Orchestrator {
  describe(signal: AbortSignal): Promise<OrchestratorDescription>;
  create(
    request: { readonly id: string; readonly spec: SandboxSpec },
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal,
  ): Promise<SandboxReport>;
  start(id: string, signal: AbortSignal): Promise<SandboxReport>;
  stop(id: string, options: { readonly graceMs: number }, signal: AbortSignal): Promise<SandboxReport>;
  remove(id: string, signal: AbortSignal): Promise<void>;
  list(signal: AbortSignal): Promise<readonly SandboxReport[]>;
  get(id: string, signal: AbortSignal): Promise<SandboxReport | undefined>;
  metrics(signal: AbortSignal): Promise<readonly SandboxUsageReport[]>;
  openChannel(id: string, signal: AbortSignal): Promise<ChannelClient>;
  changes(signal: AbortSignal): AsyncIterable<string | null>;
}

export interface OrchestratorDescription {
  readonly version: string;
  /** The class that sandboxes get; null when this host can run none. */
  readonly isolation: string | null;
  /** Why it is null. */
  readonly problem: string | null;
}

/** What an orchestrator says about one sandbox. Times are RFC 3339 and of its latest run. */
export interface SandboxReport {
  readonly id: string;
  readonly state: 'created' | 'starting' | 'running' | 'stopping' | 'stopped' | 'failed';
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** How the latest run ended; null while it lasts. */
  readonly end: { readonly reason: string; readonly message: string } | null;
}

export interface SandboxUsageReport {
  readonly id: string;
  readonly cpuPercent: number;
  readonly memoryBytes: number;
  readonly diskUsedBytes: number;
}

export interface FetchProgress {
  readonly message: string;
  readonly doneBytes: number | null;
  readonly totalBytes: number | null;
}
