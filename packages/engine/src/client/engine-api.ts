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
  /** `block_and_terminate` of a secret. */
  | 'secret_violation';

export interface SandboxView {
  /** Chosen by the caller, or made by the engine. */
  readonly id: string;
  readonly state: SandboxState;
  readonly isolation: Isolation;
  readonly runtime: string;
  readonly image: { readonly reference: string; readonly id: string };
  readonly spec: SandboxSpec;
  /** As it was told; null: the engine's own alone. */
  readonly networkCeiling: readonly string[] | null;
  readonly resolved: ResolvedSpec;
  readonly createdAt: string;
  /** Latest run. */
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
  /** Of a sandbox that ends soon by its own lifecycle. */
  readonly ending: EndingView | null;
  /** Of the newest event when this was seen: it and those before it tell nothing else. */
  readonly sequence: number;
}

export interface EndingView {
  readonly reason: 'max_duration' | 'idle_timeout';
  readonly at: string;
}

/** How long a sandbox may run and be idle; null: as long as it likes. */
export interface LifecycleUpdate {
  readonly max_duration_secs: number | null;
  readonly idle_timeout_secs: number | null;
}

/** What the image and this host have made of a spec: what holds for every process of the sandbox. */
export interface ResolvedSpec {
  /** The image's where the spec has none. */
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  /** `KEY=VALUE`: the image's, overridden by the spec's. */
  readonly env: readonly string[];
  readonly workdir: string;
  readonly user: string;
  readonly hostname: string;
  /** The image's alone. */
  readonly labels: Readonly<Record<string, string>>;
  /** As this host grants them. */
  readonly rlimits: NonNullable<SandboxSpec['rlimits']>;
  /** What the sandbox has while it runs; null or absent: none. */
  readonly interface?: {
    readonly ipv4Address: string;
    readonly ipv6Address: string | null;
    readonly mac: readonly number[];
    readonly mtu: number;
  } | null;
}

/**
 * Values of secrets by the variables that hold their placeholders. They never travel in a spec, and are never shown. The engine keeps
 * them in memory files that end with the host, so every start brings them.
 */
export type SecretValues = Readonly<Record<string, string>>;

export interface StartSandbox {
  readonly secretValues?: SecretValues;
}

/** What is absent of policy and DNS becomes the default; TLS and secrets stay unless they are null. Values are merged. */
export type NetworkUpdate = NetworkChange & {
  readonly secretValues?: SecretValues;
  /** As in `CreateSandbox`. Absent: it stays as it is. What the policy allows beyond it is held back. */
  readonly networkCeiling?: readonly string[] | null;
};

export interface CreateSandbox {
  /** 1–128 characters; a random one is made when absent. Creating twice with one id is `name_already_exists`. */
  readonly id?: string;
  readonly spec: SandboxSpec;
  /** Absent: the strongest class this host has. */
  readonly isolation?: Isolation;
  readonly registryAuth?: RegistryAuth | null;
  /** Of `spec.network.secrets`, whose entries have no values themselves. */
  readonly secretValues?: SecretValues;
  /** Start it and answer when it runs. */
  readonly start?: boolean;
  /** Volume ids by the names that `named` mounts use; a name without an entry is taken as the id. */
  readonly volumes?: Readonly<Record<string, string>>;
  /**
   * Id of a snapshot: the disk begins as a copy of its disk, on the image that it was made on; the image of `spec` and its pull policy
   * do not count. `disk_size_mib` may be larger than it was, and is as it was when absent. Patches are applied as to any new sandbox.
   */
  readonly snapshot?: string;
  /** Whose images may be used without asking their registry: those that are public, and those pulled for the same scope. */
  readonly imageScope?: string;
  /** How much all images of the scope may take, `storedBytes` of `HeldImagesView`; null: as much as they like. */
  readonly maxHeldBytes?: number | null;
  /** Volume that relative `host` paths of binds and copied files resolve in. */
  readonly hostVolume?: string;
  /**
   * A folder below each bind root and each disk image root, which the operator made for this caller: nothing else of the roots is in
   * reach. Absent: all of the roots. Letters, digits and hyphens.
   */
  readonly hostFolder?: string;
  /**
   * What the sandbox may reach at most, even where its policy allows more: groups and ranges of addresses, or `all`. A policy that says more is
   * refused. Absent or null: as much as this engine lets any sandbox reach, which holds in any case.
   */
  readonly networkCeiling?: readonly string[] | null;
}

/** What of a create can be judged before it is made. With `start`, what it needs of the host must be there already. */
export type CheckSandbox = Pick<
  CreateSandbox,
  'spec' | 'isolation' | 'hostFolder' | 'start' | 'networkCeiling'
>;

/** A copy of the disk of a sandbox as it was at one moment. It never changes. */
export interface SnapshotView {
  readonly id: string;
  readonly sandboxId: string;
  /** What the disk lies over. Cannot be removed as long as the snapshot exists. */
  readonly image: { readonly reference: string; readonly id: string };
  /** For whom the sandbox was made, see `CreateSandbox`; null or absent: for nobody in particular. */
  readonly imageScope?: string | null;
  /** The least that a sandbox made from it has. */
  readonly diskSizeMib: number;
  /** Length of the disk's file, most of it holes. */
  readonly sizeBytes: number;
  /** What it takes on this host, when it shares nothing. */
  readonly storedBytes: number;
  /** `sha256:…` over the digests of the blocks of the disk's file; docs/disk.md has a program that computes it. */
  readonly digest: string;
  readonly createdAt: string;
}

export interface CreateSnapshot {
  /** 1–128 characters; one that exists is `name_already_exists`. */
  readonly id: string;
  /** Must not be starting or stopping. Nothing else happens to it until its disk is copied; one that runs goes on. */
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
  /** Those inside, svc's own included; threads do not count. */
  readonly processes: number;
}

export type LogSource = 'stdout' | 'stderr' | 'output' | 'system';

export interface LogEntry {
  readonly time: string;
  readonly source: LogSource;
  readonly text: string;
  /** Which process wrote it; null for system entries. */
  readonly process: string | null;
  /** Opaque; hand it back to continue after this entry. */
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
  /** It ends soon by its own lifecycle; `reason` says which part of it. */
  'ending',
  /** What it may reach is another. */
  'network_changed',
  /** What a sandbox tried and was kept from; `reason` is JSON. Not every attempt is told of. */
  'policy_denied',
  'secret_violation',
  /** The disk of the host is nearly full, or has room again; of no sandbox. */
  'space_short',
  'space_back',
  'engine_started',
] as const;

/** Something that happened to a sandbox. `sequence` grows by one and continues over restarts. */
export interface EngineEvent {
  readonly sequence: number;
  readonly time: string;
  readonly type: (typeof EVENT_TYPES)[number];
  readonly sandboxId: string | null;
  readonly reason: string | null;
}

export interface ReadEvents {
  /** 0: all that are kept; absent: none of the past. */
  readonly after?: number;
  /** No others; absent: all. */
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
  /** Who may use it without asking its registry; null: everybody. */
  readonly scopes: readonly string[] | null;
  readonly layers: number;
}

export interface PullImage {
  readonly reference: string;
  readonly policy?: PullPolicy;
  readonly auth?: RegistryAuth | null;
  /** Opaque, at most 128 characters. What is pulled with credentials is kept for callers of this scope alone; see `imageScope`. */
  readonly scope?: string;
  /** As in `CreateSandbox`. */
  readonly maxHeldBytes?: number | null;
}

/** The images that a scope holds, and those that the operator provides. */
export interface HeldImagesView {
  readonly images: readonly HeldImageView[];
  /** What those of the scope take, each layer once: their content, and 4 KiB for each file. */
  readonly storedBytes: number;
}

export interface HeldImageView extends ImageView {
  /** When the scope last did; null for what the operator provides. */
  readonly usedAt: string | null;
  /** By a sandbox or a snapshot of the scope. */
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

/** A line of a streamed answer: progress until one `result` or `error` ends it. */
export type StreamLine<Result> =
  | { readonly progress: ImageProgress }
  | { readonly result: Result }
  | { readonly error: { readonly code: string; readonly message: string; readonly details: unknown } };

/** The disk of the host, in bytes. */
export type SpaceView = HostSpaceView;

/** Who takes how much of it. Layers that images share are counted for each of them. */
export interface SpaceUser {
  readonly kind: 'sandbox' | 'volume' | 'snapshot' | 'image';
  readonly id: string;
  readonly bytes: number;
}

/** A process that is likely to be wanted in sandboxes like one that has it, so that those that wait have it already. */
export interface SpareProcess {
  /** What it is known by in the sandbox. */
  readonly key: string;
  readonly cmd: string;
  readonly args: readonly string[];
  /** Where it reads what it is to do. */
  readonly stdinFd: number;
}

/** Sandboxes that are kept started because such were asked for lately. They belong to nobody. */
export interface PoolView {
  /** How many wait at most; 0: none are kept. */
  readonly max: number;
  readonly waiting: readonly {
    readonly reference: string;
    readonly isolation: Isolation;
    readonly vcpus: number;
    readonly memoryMib: number;
    readonly diskMib: number;
    /** Its image is private: only callers who may use that image get this sandbox. */
    readonly isPrivate: boolean;
    readonly createdAt: string;
    /** The programs that wait in it. */
    readonly programs: readonly string[];
  }[];
  /** Creates that got one, and that could have had one if it had been there, since the engine was started. */
  readonly handedOut: number;
  readonly missed: number;
  /** Removed because nobody asked any more, or the host needed the memory. */
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
