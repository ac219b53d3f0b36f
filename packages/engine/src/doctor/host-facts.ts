import type { CgroupLayout } from '../cgroup/cgroup-layout.ts';
import type { Isolation } from '../runtime/runtime.ts';

/** What was seen on this host, before anyone judges it. */
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
  /** Where each program was found; null when it was not. */
  readonly programs: Readonly<Record<string, string | null>>;
  /** Why the disk of the data folder takes no writes; null: it takes them, or we may not write there. */
  readonly diskFault: string | null;
  readonly freeDiskBytes: number;
  /** How much more the disks and volumes that exist may come to take. */
  readonly promisedDiskBytes: number;
  readonly totalMemoryBytes: number;
  readonly availableMemoryBytes: number;
}

/** Things that are tried for real, because neither a version nor a file proves them. */
export type AttemptName = 'idmappedOverlay' | 'diskImage' | 'fuse' | 'nftables' | 'kvm';

export type Attempt =
  | { readonly outcome: 'worked' }
  | { readonly outcome: 'failed'; readonly reason: string }
  | { readonly outcome: 'untried'; readonly reason: string };

export interface RuntimeFact {
  readonly name: string;
  readonly isolation: Isolation;
  readonly usable: boolean;
  readonly reason: string;
  readonly version: string | null;
  /** When this build was made, as far as it or its file tells. */
  readonly released: Date | null;
}
