import type { Duplex } from 'node:stream';
import type { ChannelClient } from '@svc/contract';
import type {
  CheckSandbox,
  ExplainNetwork,
  FetchProgress,
  LifecycleUpdate,
  LogEntry,
  NodeChange,
  NetworkDenial,
  NetworkExplanation,
  NetworkLogLine,
  NetworkUpdate,
  NewOrchestratorSandbox,
  ReadLogs,
  ReadNetworkLog,
  RefusedConnections,
  ReportedChange,
  SandboxReport,
  SandboxUsageReport,
  SpareProcess,
} from '@svc/contract/orchestrator';

/**
 * Runs sandboxes somewhere. Implemented by the engine of this host and, for tests, in memory. What else an engine keeps has ports of its
 * own: `ImageStore`, `VolumeStore`, `SnapshotStore`, `Nodes`.
 * - Ids are chosen by the caller. `create` with an id that exists is `name_already_exists`.
 * - `check` fails as `create` would, for what can be judged before an image is fetched; it makes nothing.
 * - `place` chooses the node for a sandbox that is to be made, with what it needs from a node: its volumes, its snapshot, its class.
 *   Null: there is only one. `create` with a `node` makes it there; without one it chooses. Reports name the node.
 * - `create` makes a stopped sandbox; the image is fetched when it is missing. A failed `create` leaves nothing.
 * - `create` with `start` answers as `start` does, and may take a sandbox that was prepared. Once it has fetched the image
 *   it reports `STARTING_MESSAGE`.
 * - A caller that aborts a `create` while the image is fetched leaves nothing; later, the sandbox may come to be.
 * - `start` answers when the sandbox runs and its channel answers. Starting a running one changes nothing.
 * - `stop` answers when everything of the run is released; the disk is kept. Stopping a stopped one succeeds.
 * - `remove` is legal in every state and succeeds when the sandbox is already gone.
 * - `expectProcess` says that a sandbox has this process: one that is prepared for the next caller who asks for the same may have it,
 *   known by the key, as a spare detached process. It is one that the caller's sandbox would have started in the same way.
 * - `start`, `stop`, `setNetwork`, `setLifecycle`, `expectProcess`, `openChannel`, `openStream`, `logs` and `networkLog` of an unknown id are `sandbox_not_found`.
 * - `openChannel` and `openStream` of a sandbox that does not run are `sandbox_not_running`; when its latest run is over, or
 *   just ends, `details` say how: `{state, reason, ended}`, where `ended` is a sentence.
 * - `openStream` gives the bytes of a command channel, handshake first, for a relay that does not look into them. Each
 *   stream is a client of its own: what it started is killed when it is destroyed, and no other stream sees its frames.
 *   Neither end is read faster than the other takes it.
 * - `logs` yields what is kept, oldest first; with `follow` also what comes, until the run is over. Sandboxes that do not
 *   run have logs too.
 * - `setNetwork` changes what a sandbox may reach, at once if it runs and for its later runs; what is absent becomes the default, but
 *   TLS and secrets stay unless they are null. What a create would refuse is refused, and then the old holds. Values of secrets hold
 *   at once for requests that begin, and are never shown again.
 * - A `networkCeiling` bounds what a policy opens: `check` and `create` refuse a policy beyond it with `network_ceiling_exceeded`, and
 *   `setNetwork` holds the sandbox to it.
 * - `setLifecycle` changes how long a sandbox may run and be idle, at once if it runs and for its later runs.
 * - `explainNetwork` says how a connection would be judged, of a sandbox in any state; one that is not made yet is judged by the
 *   network that is asked about.
 * - `networkLog` yields what was decided about the network of a sandbox, oldest first, and how much was left out, since what is kept is
 *   bounded; with `follow` also what comes, until the run is over. `noteRefused` adds connections that published ports refused.
 * - `metrics` reports running sandboxes only, and of them those whose spec wants to be measured.
 * - Sandboxes outlive the caller and the orchestrator's own process: `list` finds them again.
 * - `changes` yields every sandbox that changed since the call (perhaps also before it), null when any may have, and nodes that go away
 *   and come back. It throws when the orchestrator goes away, with all its nodes; a caller then asks again, and lists.
 * - `denials` yields what sandboxes try and are kept from, from the call on; not every attempt, when there are many.
 * - When the orchestrator is away every call fails with `orchestrator_unreachable`. When a node is away the calls about its sandboxes
 *   do, and `list`, `metrics` and `denials` leave them out: `get` tells a sandbox that is away from one that is gone.
 */
export interface Orchestrator {
  check(request: CheckSandbox, signal: AbortSignal): Promise<void>;
  place(request: NewOrchestratorSandbox, signal: AbortSignal): Promise<string | null>;
  create(
    request: NewOrchestratorSandbox,
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal,
  ): Promise<SandboxReport>;
  start(id: string, signal: AbortSignal): Promise<SandboxReport>;
  stop(id: string, options: { readonly graceMs: number }, signal: AbortSignal): Promise<SandboxReport>;
  remove(id: string, signal: AbortSignal): Promise<Pick<SandboxReport, 'sequence'>>;
  list(signal: AbortSignal): Promise<readonly SandboxReport[]>;
  get(id: string, signal: AbortSignal): Promise<SandboxReport | undefined>;
  setNetwork(id: string, network: NetworkUpdate, signal: AbortSignal): Promise<SandboxReport>;
  setLifecycle(id: string, lifecycle: LifecycleUpdate, signal: AbortSignal): Promise<SandboxReport>;
  explainNetwork(request: ExplainNetwork, signal: AbortSignal): Promise<NetworkExplanation>;
  networkLog(id: string, options: ReadNetworkLog, signal: AbortSignal): AsyncIterable<NetworkLogLine>;
  noteRefused(id: string, refused: RefusedConnections, signal: AbortSignal): Promise<void>;
  metrics(signal: AbortSignal): Promise<readonly SandboxUsageReport[]>;
  expectProcess(id: string, process: SpareProcess, signal: AbortSignal): Promise<void>;
  openChannel(id: string, signal: AbortSignal): Promise<ChannelClient>;
  openStream(id: string, signal: AbortSignal): Promise<Duplex>;
  logs(id: string, options: ReadLogs, signal: AbortSignal): AsyncIterable<LogEntry>;
  changes(signal: AbortSignal): AsyncIterable<ReportedChange | NodeChange | null>;
  denials(signal: AbortSignal): AsyncIterable<NetworkDenial>;
}
