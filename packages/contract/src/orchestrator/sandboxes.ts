import type { Network, NetworkChange } from '../spec/network.ts';
import type { SandboxSpec } from '../spec/sandbox-spec.ts';
import type { RegistryAuth } from './images.ts';
import type { Isolation } from './isolation.ts';

/** Progress of a create with `start`, once the image is there. */
export const STARTING_MESSAGE = 'starting the sandbox';

/** Every state of a sandbox on its host. `NEXT_STATES` in engine/src/sandboxes/states.ts holds the legal moves. */
export type SandboxState = 'created' | 'starting' | 'running' | 'stopping' | 'stopped' | 'failed';

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
  /**
   * Path of a cgroup of the host, the same in each of its trees, in which the sandbox has its own: that of a Pod, say. It must exist at
   * each start. Set by orchestrators alone, never by callers. Absent or null: the engine's.
   */
  readonly cgroupParent?: string | null;
}

/** The part of a create that can be checked beforehand. With `start`, the host resources that it needs must exist already. */
export type CheckSandbox = Pick<
  CreateSandbox,
  'spec' | 'isolation' | 'hostFolder' | 'start' | 'networkCeiling' | 'cgroupParent'
>;

/** A process that callers often start in this kind of sandbox; warm sandboxes run it in advance. */
export interface SpareProcess {
  /** Its name in the sandbox. */
  readonly key: string;
  readonly cmd: string;
  readonly args: readonly string[];
  /** The descriptor at which it reads its input. */
  readonly stdinFd: number;
}

export type NewOrchestratorSandbox = CreateSandbox & {
  readonly id: string;
  /** Where it is made; absent: where the orchestrator chooses. */
  readonly node?: string;
};

/** What an orchestrator says about one sandbox. Times are RFC 3339 and of its latest run. */
export interface SandboxReport {
  readonly id: string;
  /** The node that has it; absent: there is only one. */
  readonly node?: string;
  readonly state: SandboxState;
  /** The class it was made with; null when unknown. */
  readonly isolation: string | null;
  /** The image it was made from, as it was asked for; absent when unknown. */
  readonly image?: string;
  readonly createdAt?: string;
  /** What image and host made of its spec; null when unknown. */
  readonly resolved: ResolvedSpec | null;
  /** What it may reach; absent when unknown. */
  readonly network?: Network;
  /** The ceiling of its network as last set; absent or null: none was set. */
  readonly networkCeiling?: readonly string[] | null;
  /** How long it may run and be idle; absent when unknown. */
  readonly lifecycle?: LifecycleUpdate;
  /** When that limit ends it, reported a minute before; absent or null: not soon. */
  readonly ending?: EndingView | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** How the latest run ended; null while it lasts. */
  readonly end: { readonly reason: string; readonly message: string } | null;
  /** Sequence of the latest change that the report covers; absent when unknown. */
  readonly sequence?: number;
}

/** A sandbox that has changed. */
export interface ReportedChange {
  readonly id: string;
  /** Increases with each change; absent when unknown. */
  readonly sequence?: number;
}

/** A node that went away, or answers again. */
export interface NodeChange {
  readonly node: string;
  /** Why its sandboxes cannot be reached; null: they can be again, and any of them may have changed. */
  readonly problem: string | null;
}

export interface SandboxUsageReport {
  readonly id: string;
  /** The node that has it; absent: there is only one. */
  readonly node?: string;
  /** The same in two reports: nothing was measured between them. */
  readonly sampledAt: string;
  readonly cpuPercent: number;
  readonly memoryBytes: number;
  readonly memoryLimitBytes: number;
  readonly diskUsedBytes: number;
  readonly diskTotalBytes: number;
  /** Since the run began. */
  readonly networkReceivedBytes: number;
  readonly networkSentBytes: number;
  readonly processes: number;
}
