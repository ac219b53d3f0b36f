import type { Isolation } from '@svc/contract/orchestrator';
import type { CgroupLayout } from '../cgroup/cgroup-layout.ts';
import type { RuntimeName } from '../runtime/runtimes.ts';

/** Raw observations of this host, before they are judged. */
export interface HostFacts {
  readonly isRoot: boolean;
  readonly kernelRelease: string;
  readonly cgroups: CgroupLayout;
  /** /proc/sys/user/max_user_namespaces; null when the kernel has none. */
  readonly maxUserNamespaces: number | null;
  /** /proc/sys/kernel/seccomp/actions_avail; null without seccomp. */
  readonly seccompActions: string | null;
  readonly ipForward: boolean;
  readonly attempts: Readonly<Record<AttemptName, Attempt>>;
  readonly runtimes: readonly RuntimeFact[];
  /** Path of each program; null when it was not found. */
  readonly programs: Readonly<Record<string, string | null>>;
  /** Why the disk of the data folder refuses writes; null: it accepts them, or this user may not write there. */
  readonly diskFault: string | null;
  readonly freeDiskBytes: number;
  /** How much further the existing disks and volumes can grow. */
  readonly promisedDiskBytes: number;
  readonly totalMemoryBytes: number;
  readonly availableMemoryBytes: number;
}

/** Results of real tries, for features that neither a version nor a file proves. */
export type AttemptName = 'idmappedOverlay' | 'diskImage' | 'fuse' | 'nftables' | 'kvm';

export type Attempt =
  | { readonly outcome: 'worked' }
  | { readonly outcome: 'failed'; readonly reason: string }
  | { readonly outcome: 'untried'; readonly reason: string };

export interface RuntimeFact {
  readonly name: RuntimeName;
  readonly isolation: Isolation;
  readonly usable: boolean;
  readonly reason: string;
  readonly version: string | null;
  /** Build date, from the version output or the file's time. */
  readonly released: Date | null;
}
