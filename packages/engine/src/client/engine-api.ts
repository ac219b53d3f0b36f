import type { NetworkChange, SandboxSpec } from '@svc/contract';
import type { ImageConfig, ImageProgress, PullPolicy, RegistryAuth } from '../images/images.ts';
import type { HostSpaceView } from '../space/host-space.ts';
import type { Isolation, RuntimeProbe } from '../runtime/runtime.ts';

/** Every state of a sandbox on this host. `NEXT_STATES` in sandboxes/states.ts holds the legal moves. */
export type SandboxState = 'created' | 'starting' | 'running' | 'stopping' | 'stopped' | 'failed';

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

export interface EndingView {
  readonly reason: 'max_duration' | 'idle_timeout';
  readonly at: string;
}

/** How long a sandbox may run and be idle; null: without limit. */
export interface LifecycleUpdate {
  readonly max_duration_secs: number | null;
  readonly idle_timeout_secs: number | null;
}

/** The spec with the values of the image and the host filled in. It holds for every process of the sandbox. */
export interface ResolvedSpec {
  /** From the image where the spec has none. */
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  /** `KEY=VALUE`: those of the image, overridden by those of the spec. */
  readonly env: readonly string[];
  readonly workdir: string;
  readonly user: string;
  readonly hostname: string;
  /** From the image only. */
  readonly labels: Readonly<Record<string, string>>;
  /** As granted by this host. */
  readonly rlimits: NonNullable<SandboxSpec['rlimits']>;
  /** Addresses while it runs; null or absent: none. */
  readonly interface?: {
    readonly ipv4Address: string;
    readonly ipv6Address: string | null;
    readonly mac: readonly number[];
    readonly mtu: number;
  } | null;
}

/**
 * Values of secrets by the variables that hold their placeholders. They are never part of a spec and never shown. The engine keeps them
 * in memory-backed files, which a restart of the host deletes; so every start passes them again.
 */
export type SecretValues = Readonly<Record<string, string>>;

export interface StartSandbox {
  readonly secretValues?: SecretValues;
}

/** Absent policy and DNS become the default; absent TLS and secrets stay, null removes them. Values are merged. */
export type NetworkUpdate = NetworkChange & {
  readonly secretValues?: SecretValues;
  /** As in `CreateSandbox`. Absent: unchanged. Where the policy allows more, the ceiling wins. */
  readonly networkCeiling?: readonly string[] | null;
};

export interface CreateSandbox {
  /** 1–128 characters; a random one is made when absent. Creating twice with one id is `name_already_exists`. */
  readonly id?: string;
  readonly spec: SandboxSpec;
  /** Absent: the strongest class of this host. */
  readonly isolation?: Isolation;
  readonly registryAuth?: RegistryAuth | null;
  /** For `spec.network.secrets`, whose entries hold no values. */
  readonly secretValues?: SecretValues;
  /** Start the sandbox and answer when it runs. */
  readonly start?: boolean;
  /** Volume ids by the names that `named` mounts use; a name without an entry is taken as the id. */
  readonly volumes?: Readonly<Record<string, string>>;
  /**
   * Id of a snapshot: the disk starts as a copy of the snapshot's disk, on the same image; the image and pull policy of `spec` are ignored.
   * `disk_size_mib` may be larger than the snapshot's, which is the default. Patches are applied as for any new sandbox.
   */
  readonly snapshot?: string;
  /** Image scope: public images and images pulled for the same scope may be used without asking their registry. */
  readonly imageScope?: string;
  /** Limit for all images of the scope, compared with `storedBytes` of `HeldImagesView`; null: no limit. */
  readonly maxHeldBytes?: number | null;
  /** Volume in which relative `host` paths of binds and copied files are resolved. */
  readonly hostVolume?: string;
  /**
   * A folder below each bind root and each disk image root that the operator made for this caller: other parts of the roots are not
   * accessible. Absent: all of the roots. Letters, digits and hyphens.
   */
  readonly hostFolder?: string;
  /**
   * Upper bound for what the sandbox may reach: groups and ranges of addresses, or `all`. A policy that allows more is refused. Absent or
   * null: the bound of this engine, which holds in any case.
   */
  readonly networkCeiling?: readonly string[] | null;
}

/** The part of a create that can be checked beforehand. With `start`, the host resources that it needs must exist already. */
export type CheckSandbox = Pick<
  CreateSandbox,
  'spec' | 'isolation' | 'hostFolder' | 'start' | 'networkCeiling'
>;

/** A copy of a sandbox's disk at one moment. It never changes. */
export interface SnapshotView {
  readonly id: string;
  readonly sandboxId: string;
  /** The image below the disk. It cannot be removed while the snapshot exists. */
  readonly image: { readonly reference: string; readonly id: string };
  /** The scope of the sandbox, see `CreateSandbox`; null or absent: none. */
  readonly imageScope?: string | null;
  /** The minimum for a sandbox made from it. */
  readonly diskSizeMib: number;
  /** Length of the disk's file, most of which is holes. */
  readonly sizeBytes: number;
  /** Space on this host, when no block is shared. */
  readonly storedBytes: number;
  /** `sha256:…` over the digests of the blocks of the disk's file; docs/operating/disk.md has a program that computes it. */
  readonly digest: string;
  readonly createdAt: string;
}

export interface CreateSnapshot {
  /** 1–128 characters; an id that exists is `name_already_exists`. */
  readonly id: string;
  /** Must not be starting or stopping. The copy holds the lock of the sandbox; a running sandbox continues. */
  readonly sandboxId: string;
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

export type LogSource = 'stdout' | 'stderr' | 'output' | 'system';

export interface LogEntry {
  readonly time: string;
  readonly source: LogSource;
  readonly text: string;
  /** The process that wrote it; null for system entries. */
  readonly process: string | null;
  /** Opaque cursor; pass it back to continue after this entry. */
  readonly cursor: string;
}

export interface ReadLogs {
  readonly sources?: readonly LogSource[];
  readonly cursor?: string;
  readonly tail?: number;
  readonly follow?: boolean;
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

export interface ImageView {
  readonly id: string;
  readonly digest: string | null;
  readonly references: readonly string[];
  readonly config: ImageConfig;
  readonly architecture: string;
  readonly sizeBytes: number;
  readonly createdAt: string;
  /** Scopes that may use it without asking its registry; null: all. */
  readonly scopes: readonly string[] | null;
  readonly layers: number;
}

export interface PullImage {
  readonly reference: string;
  readonly policy?: PullPolicy;
  readonly auth?: RegistryAuth | null;
  /** Opaque, at most 128 characters. Images pulled with credentials are available to this scope only; see `imageScope`. */
  readonly scope?: string;
  /** As in `CreateSandbox`. */
  readonly maxHeldBytes?: number | null;
}

/** The images that a scope holds, and those of the operator. */
export interface HeldImagesView {
  readonly images: readonly HeldImageView[];
  /** Space of the scope's images, each layer counted once: content, and 4 KiB for each file. */
  readonly storedBytes: number;
}

export interface HeldImageView extends ImageView {
  /** When the scope last used it; null for images of the operator. */
  readonly usedAt: string | null;
  /** In use by a sandbox or a snapshot of the scope. */
  readonly isInUse: boolean;
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

/** The disk of the host, in bytes. */
export type SpaceView = HostSpaceView;

/** Use of the disk by owner. Layers that images share are counted for each image. */
export interface SpaceUser {
  readonly kind: 'sandbox' | 'volume' | 'snapshot' | 'image';
  readonly id: string;
  readonly bytes: number;
}

/** A process that callers often start in this kind of sandbox; warm sandboxes run it in advance. */
export interface SpareProcess {
  /** Its name in the sandbox. */
  readonly key: string;
  readonly cmd: string;
  readonly args: readonly string[];
  /** The descriptor at which it reads its input. */
  readonly stdinFd: number;
}

/** Sandboxes that are kept started because similar ones were requested recently. They have no owner. */
export interface PoolView {
  /** Maximum number of warm sandboxes; 0: none are kept. */
  readonly max: number;
  readonly waiting: readonly {
    readonly reference: string;
    readonly isolation: Isolation;
    readonly vcpus: number;
    readonly memoryMib: number;
    readonly diskMib: number;
    /** True when its image is private: only callers who may use that image get this sandbox. */
    readonly isPrivate: boolean;
    readonly createdAt: string;
    /** The programs that run in it in advance. */
    readonly programs: readonly string[];
  }[];
  /** Creates that got a warm sandbox, and creates that would have matched one, since the engine started. */
  readonly handedOut: number;
  readonly missed: number;
  /** Removed because demand stopped or the host needed the memory. */
  readonly givenBack: number;
}

export interface Capabilities {
  readonly version: string;
  readonly startedAt: string;
  readonly bootId: string;
  readonly defaultIsolation: Isolation | null;
  readonly runtimes: readonly (RuntimeProbe & { readonly name: string; readonly isolation: Isolation })[];
  readonly cgroup: 'v1' | 'v2';
  readonly sandboxes: number;
  readonly space: HostSpaceView;
}
