import type { QuickMoves } from '../tuning/quick-moves.ts';
import type { FairSemaphore } from '@svc/contract/async';
import type { Isolation } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import type { Cgroups } from '../cgroup/cgroups.ts';
import type { EventLog } from '../events/event-log.ts';
import type { GuestFolders, ProcContent } from '../guest/guest-folders.ts';
import type { TokenBuckets } from '../guest/token-buckets.ts';
import type { Images } from '../images/images.ts';
import type { Network } from '../network/network.ts';
import type { Rootfs } from '../rootfs/rootfs.ts';
import type { RlimitCeilings } from '../runtime/rlimits.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { HostSpace } from '../space/host-space.ts';
import type { Snapshots } from '../snapshots/snapshots.ts';
import type { Volumes } from '../volumes/volumes.ts';
import type { HostSize } from './check-size.ts';
import type { HostFiles } from './copy-from-host.ts';
import type { RecordFiles } from './record-files.ts';
import type { SecretFiles } from './secret-values.ts';

/** Everything that running a sandbox needs from this host. Built once, by the composition root. */
export interface Kit {
  readonly bootId: string;
  readonly logger: Logger;
  readonly records: RecordFiles;
  readonly secrets: SecretFiles;
  readonly events: EventLog;
  readonly images: Images;
  readonly rootfs: Rootfs;
  readonly space: Pick<HostSpace, 'require' | 'view' | 'explain'>;
  readonly snapshots: Snapshots;
  readonly network: Network;
  readonly volumes: Volumes;
  readonly guestFolders: GuestFolders;
  readonly tokenBuckets: TokenBuckets;
  /** For new sandboxes, in order of preference. */
  readonly runtimes: readonly Runtime[];
  /** For sandboxes that exist: also a runtime that failed its probe can be asked about them. */
  readonly knownRuntimes: readonly Runtime[];
  /** The class for sandboxes that ask for none; null when this host can run none. */
  readonly defaultIsolation: Isolation | null;
  /** Why a class is missing, for the error that says so. */
  readonly missing: ReadonlyMap<Isolation, string>;
  /** Which build of each runtime this is. */
  readonly probes: readonly { readonly name: string; readonly version: string | null }[];
  readonly cgroups: Pick<
    Cgroups,
    | 'usage'
    | 'cpuMicroseconds'
    | 'hasOtherParents'
    | 'parentProblem'
    | 'oomKills'
    | 'forkRefusals'
    | 'limitSockets'
    | 'processIds'
  >;
  /** Null with `--tuning off`. */
  readonly tuning: {
    readonly quickMoves: Pick<QuickMoves, 'hold'>;
    raiseKernelPriority(pids: readonly number[]): void;
  } | null;
  readonly mounts: HostFiles;
  readonly rlimitCeilings: RlimitCeilings;
  readonly readHostSize: () => HostSize;
  readonly procContent: (limits: { readonly vcpus: number; readonly memoryMib: number }) => ProcContent;
  /** Where sandboxes are started. */
  readonly startPlaces: FairSemaphore;
  readonly limits: EngineLimits;
}

export interface EngineLimits {
  readonly maxProcesses: number;
  readonly startTimeoutMs: number;
  readonly stopGraceMs: number;
  readonly reconnectMs: number;
}
