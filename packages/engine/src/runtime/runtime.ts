import type { Rlimit } from '@svc/contract';
import type { Slot } from '../network/network.ts';

export type Isolation = 'container' | 'gvisor' | 'microvm';
export type SecurityProfile = 'default' | 'restricted';

export interface RuntimeMount {
  /** A path that only the engine can change; absent for tmpfs. */
  readonly source: string | null;
  readonly destination: string;
  readonly sizeMib: number | null;
  /** The guest user whom a tmpfs belongs to; root when it is null. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
  readonly readonly: boolean;
  readonly noexec: boolean;
  readonly nosuid: boolean;
  readonly nodev: boolean;
}

export interface RuntimeSpec {
  /** Made by the engine, unique on this host, safe as a file and cgroup name. */
  readonly handle: string;
  /** Root file system, owned as the slot's user namespace sees it. Every folder above it must let others pass (mode o+x). */
  readonly rootfs: string;
  readonly hostname: string;
  /**
   * Shown read-only at /.svc: the program `init`, the socket `engine.sock` (mode 0666), `scripts/`. The guest sees the path of this folder
   * and of `procFiles` within their file system (mountinfo), so both belong on a small file system of their own.
   */
  readonly guestFolder: string;
  readonly initToken: string;
  readonly profile: SecurityProfile;
  readonly slot: Slot;
  readonly vcpus: number;
  readonly memoryMib: number;
  readonly maxProcesses: number;
  readonly rlimits: readonly Rlimit[];
  readonly mounts: readonly RuntimeMount[];
  /**
   * Files shown over /proc/meminfo (by runtimes that share the host's kernel), /proc/cpuinfo and /sys/devices/system/cpu/online.
   * Written in place: a file that is replaced is no longer the one that is shown.
   */
  readonly procFiles: { readonly meminfo: string; readonly cpuinfo: string; readonly cpuOnline: string };
}

export interface Started {
  /** As granted: limits beyond what this engine may give are lowered. */
  readonly rlimits: readonly Rlimit[];
}

export interface RuntimeProbe {
  readonly usable: boolean;
  /** What is missing and how to get it, or which version runs. */
  readonly reason: string;
  readonly version: string | null;
  /** When that build was released, if it says so. */
  readonly released: Date | null;
}

/**
 * Isolates processes on this host. Implemented by runc, crun and runsc.
 * - `start` returns when PID 1 (`/.svc/init`) has been started; it fails with `start_failed` and a reason that names the cause.
 *   A start that fails leaves nothing that `remove` does not remove.
 * - `isAlive` is true from a successful `start` until PID 1 ends, also in another process of the engine later.
 * - `kill` ends every process of the sandbox at once; it succeeds when none is left.
 * - `remove` kills, then forgets the sandbox and its cgroups; it succeeds when the sandbox is already gone, so cleanup can be repeated.
 * - A sandbox survives the death of this process; `list` finds it again.
 * - Calls for one sandbox never overlap; calls for different sandboxes may.
 */
export interface Runtime {
  readonly name: string;
  readonly isolation: Isolation;
  /** Starts something small for real; never trusts a version number or a device file alone. One at a time per runtime. */
  probe(signal: AbortSignal): Promise<RuntimeProbe>;
  start(spec: RuntimeSpec, signal: AbortSignal): Promise<Started>;
  /** Ends what held only while it started. `start` does so too; an engine that finds a sandbox again repeats it. */
  settle(handle: string): Promise<void>;
  /** Nothing happens in it: what it does by the clock may be a second late, until it is woken. Of no matter without a kernel of its own. */
  rest(handle: string): Promise<void>;
  wake(handle: string): Promise<void>;
  isAlive(handle: string): Promise<boolean>;
  kill(handle: string): Promise<void>;
  remove(handle: string): Promise<void>;
  /** Handles of all sandboxes that this runtime knows under its state folder, alive or dead. */
  list(): Promise<readonly string[]>;
}
