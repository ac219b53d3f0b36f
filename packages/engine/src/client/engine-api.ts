import type { SandboxSpec } from '@svc/contract';
import type {
  EndingView,
  Isolation,
  ResolvedSpec,
  SandboxState,
  SecretValues,
  SpaceView,
} from '@svc/contract/orchestrator';
import type { ImageProgress } from '../images/images.ts';
import type { RuntimeProbe } from '../runtime/runtime.ts';

/** Why a run ended. */
export type EndReason =
  | 'stopped'
  | 'exited'
  | 'oom'
  | 'crashed'
  | 'start_failed'
  | 'idle_timeout'
  | 'max_duration'
  | 'host_restart'
  /** A secret with `block_and_terminate` was violated. */
  | 'secret_violation';

export interface SandboxView {
  /** Chosen by the caller, or made by the engine. */
  readonly id: string;
  readonly state: SandboxState;
  readonly isolation: Isolation;
  readonly runtime: string;
  readonly image: { readonly reference: string; readonly id: string };
  readonly spec: SandboxSpec;
  /** The scope of the create; null: only images of the engine. */
  readonly networkCeiling: readonly string[] | null;
  readonly resolved: ResolvedSpec;
  readonly createdAt: string;
  /** The latest run. */
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** How the latest run ended; null while it is open. */
  readonly end: {
    readonly reason: EndReason;
    readonly message: string;
    readonly exitCode: number | null;
  } | null;
  readonly address: string | null;
  readonly timings: Readonly<Record<string, number>> | null;
  /** Set when the sandbox ends soon because of its lifecycle. */
  readonly ending: EndingView | null;
  /** Sequence of the newest event at the time of this view; events up to it hold nothing newer. */
  readonly sequence: number;
}

export interface StartSandbox {
  readonly secretValues?: SecretValues;
}

export interface SandboxMetrics {
  readonly id: string;
  readonly sampledAt: string;
  readonly cpuPercent: number;
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
  readonly memoryLimitBytes: number;
  readonly diskUsedBytes: number;
  readonly diskTotalBytes: number;
  readonly networkReceivedBytes: number;
  readonly networkSentBytes: number;
  /** Processes in the sandbox, svc's own included; threads do not count. */
  readonly processes: number;
}

export const EVENT_TYPES = [
  'created',
  'starting',
  'running',
  'stopping',
  'stopped',
  'failed',
  'removed',
  'oom',
  /** The sandbox ends soon because of its lifecycle; `reason` names the rule. */
  'ending',
  /** Its network policy has changed. */
  'network_changed',
  /** The policy denied a connection or request; `reason` is JSON. Repeated denials are not all reported. */
  'policy_denied',
  'secret_violation',
  /** The disk of the host is nearly full, or has room again; not tied to a sandbox. */
  'space_short',
  'space_back',
  'engine_started',
] as const;

/** An event of a sandbox. `sequence` grows by one and continues over restarts. */
export interface EngineEvent {
  readonly sequence: number;
  readonly time: string;
  readonly type: (typeof EVENT_TYPES)[number];
  readonly sandboxId: string | null;
  readonly reason: string | null;
}

export interface ReadEvents {
  /** 0: all kept events; absent: only new ones. */
  readonly after?: number;
  /** Only these types; absent: all. */
  readonly types?: readonly EngineEvent['type'][];
}

export interface ImportImage {
  /** Absolute path on the engine's host. */
  readonly path: string;
  readonly reference: string;
}

export interface BuildDemoImages {
  readonly names?: readonly string[];
  readonly force?: boolean;
}

/** A line of a streamed answer: progress lines, then one `result` or `error`. */
export type StreamLine<Result> =
  | { readonly progress: ImageProgress }
  | { readonly result: Result }
  | { readonly error: { readonly code: string; readonly message: string; readonly details: unknown } };

export interface Capabilities {
  readonly version: string;
  readonly startedAt: string;
  readonly bootId: string;
  readonly defaultIsolation: Isolation | null;
  readonly runtimes: readonly (RuntimeProbe & { readonly name: string; readonly isolation: Isolation })[];
  readonly cgroup: 'v1' | 'v2';
  readonly sandboxes: number;
  readonly space: SpaceView;
}
