/**
 * Kernel calls that Node lacks, made by the resident helper `svc-host` (packages/host).
 * Every call is one request and one answer; a failed call throws `HostCallError` with the errno name and leaves nothing half done.
 * Two exceptions: `ECHILD` (the helper was killed) and `ETIMEDOUT`, after which the caller cleans up with `removeNamespaces` or `unmount`.
 * Paths are absolute and plain: no empty, `.` or `..` part.
 */
export interface HostCalls {
  /**
   * Makes a user namespace (root = `idBase`, 65,536 ids) and a network namespace owned by it, pinned at the two paths
   * (made as empty files). lo is up, and every user inside may send echo requests without a raw socket. With `link` also a veth pair:
   * `hostInterface` on the host side, `eth0` inside with `mac` and `address`/32, default route via `gateway`, host side up with `gateway`/32 and a route
   * to `address`. `ipv6` adds the same for IPv6, with static neighbour entries on both ends; without it IPv6 is off on both ends.
   * `idBase` is at least 65,536.
   */
  createNamespaces(request: {
    readonly userPath: string;
    readonly networkPath: string;
    readonly idBase: number;
    readonly link: {
      readonly hostInterface: string;
      readonly address: string;
      readonly gateway: string;
      readonly mtu: number;
      /** `02:00:00:00:00:07`, a unicast address. */
      readonly mac: string;
      /** IPv6 requires an MTU of 1,280 or more. */
      readonly ipv6?: { readonly address: string; readonly gateway: string };
    } | null;
  }): Promise<void>;
  /** Unpins and deletes both files; succeeds when they are missing. The veth pair goes with the namespace. */
  removeNamespaces(userPath: string, networkPath: string): Promise<void>;
  /** Deletes a network interface of the host; succeeds when there is none. */
  deleteLink(name: string): Promise<void>;

  /**
   * Mounts an overlay at `target`: `layers` (lowest first) under `upper`/`work`, all seen through the id mapping of the user namespace
   * at `userPath`. Mount options show no host path. nodev, nosuid. `upper` and `work` are folders side by side; the mount that holds
   * them may be unmounted afterwards, the overlay keeps it alive.
   */
  mountOverlay(request: {
    readonly target: string;
    readonly layers: readonly string[];
    readonly upper: string;
    readonly work: string;
    readonly userPath: string;
    readonly idBase: number;
  }): Promise<void>;
  /**
   * Mounts a file-system image (ext4, erofs, squashfs) on a free loop device that goes away with the mount. nodev, nosuid always.
   * `EBUSY` while an earlier mount of the image exists anywhere, unless both are read-only: two writers would destroy it. `EUCLEAN` when
   * a writable ext4 image has to be checked with e2fsck first; the image is then unused.
   */
  mountImage(request: {
    readonly image: string;
    readonly target: string;
    readonly fstype: string;
    readonly readonly: boolean;
    /**
     * An fsync inside is not passed on to the host's disk: much faster, and nothing is lost while the host stays up. After
     * a crash of the host the image may lack the writes of the last half minute.
     */
    readonly isVolatile?: boolean;
  }): Promise<void>;
  /**
   * Binds `root`/`path`, a file or a folder, at `target`, which is made when it is missing. nodev, nosuid. `path` is resolved inside
   * `root` (openat2 RESOLVE_IN_ROOT, no magic links), so a symlink planted by a guest cannot lead outside. With `idmap` the files
   * appear through the namespace at `userPath`, or with the owners that `owner` defines.
   */
  bind(request: {
    readonly root: string;
    readonly path: string;
    readonly target: string;
    readonly readonly: boolean;
    /** Mounted noexec, independent of the runtime's own option. */
    readonly noexec?: boolean;
    readonly idmap: {
      readonly userPath: string;
      readonly idBase: number;
      readonly owner: BindOwner | null;
    } | null;
  }): Promise<{ readonly kind: 'file' | 'directory' }>;
  /** Detaches every mount at `target`; succeeds when there is none. */
  unmount(target: string): Promise<void>;
  /**
   * The same, and then removes so many empty folders, from the mount point upwards; succeeds when they are missing. The removal of a mount
   * point may block in the kernel while other mount namespaces still have it.
   */
  removeMountPoint(target: string, folders: 1 | 2): Promise<void>;
  /** Copies a sparse file to a new one, holes kept; `EEXIST` when the new one exists. */
  copySparse(from: string, to: string): Promise<void>;
  /**
   * Copies an ext4 image that is mounted writable from the loop device `device` to the new file `to`, holes kept, while its file system
   * is frozen: earlier writes are in the copy, and new ones block. `mark` exists, and is locked, from before the freeze until after
   * it. `EBUSY` while another program has frozen it, `ETIMEDOUT` when it would be frozen for more than `mostMs`. Returns for how
   * many milliseconds it was. After `ECHILD` it may still be frozen: call `thaw`.
   */
  copyFrozen(request: FrozenDisk & { readonly to: string; readonly mostMs: number }): Promise<number>;
  /** Thaws a file system that a helper left frozen. Succeeds without a mark; `EBUSY` while a running process holds the freeze. */
  thaw(disk: FrozenDisk): Promise<void>;

  /** Switches this loop device to direct I/O: writes bypass the page cache of the image's file system. */
  writeDirectly(image: string, device: string): Promise<void>;
  /**
   * Runs a program that outlives this process and the helper: in its own session, so that signals to ours do not reach it, in the
   * folder /, and with no open descriptor but its streams. Resolves when it has ended, with its exit code or 128 plus the number of the
   * signal that ended it. `ENOENT` when there is no such program. When `signal` aborts, rejects with its reason after the program and
   * its process group were killed. After `ECHILD` the program may still run.
   */
  launch(request: LaunchRequest, signal: AbortSignal): Promise<number>;
  /**
   * Whether a launch that claims the folder is about to execute its program. Helpers execute nothing for an engine that has died; so
   * once this is false, every program executed for a dead engine and this folder is visible. `ENOENT` when there is no such folder.
   */
  isClaimed(folder: string): Promise<boolean>;
  /**
   * Timers of all threads of these processes go off up to `slackNs` late from now on; with `isInterrupt` those of Go that sleep by one
   * that was set before wake up. Never waits behind another kind of call, and the last of two counts. Those that are gone are left out.
   */
  setPrecision(pids: readonly number[], slackNs: number, isInterrupt: boolean): Promise<void>;
  close(): Promise<void>;
}

export interface FrozenDisk {
  readonly image: string;
  readonly device: string;
  readonly mark: string;
}

/**
 * The owner that a guest sees on files of the host: of files of id 0 in a volume, or of the folder owner's files in a folder of
 * the host. Every other guest user can own files as well; a folder of the host stores them under the host ids of the sandbox.
 */
export interface BindOwner {
  readonly storedAs: 'volume' | 'folder';
  readonly uid: number;
  readonly gid: number;
  /**
   * How many bytes the guest may add, null for no limit. A writable bind with a quota, or of a folder of the host, is served by a process
   * that counts bytes and drops set-user-id bits; so is a folder of the host whose file system cannot map ids. `ENODEV` when the host has no
   * FUSE, `EIO` when the file system cannot be served (it has no file handles).
   */
  readonly quotaMib: number | null;
  /**
   * For a writable folder of the host: where the owner and mode that the guest sets on a file are stored. `strict`: in an extended attribute,
   * `EOPNOTSUPP` when the file system has none. `relaxed`: in memory while mounted, when it has none. `off`: in the file itself.
   */
  readonly statVirtualization: 'strict' | 'relaxed' | 'off';
  /** `mirror`: the read, write and execute bits of files and folders are set on the host as well. */
  readonly hostPermissions: 'private' | 'mirror';
}

export interface LaunchRequest {
  /** The program and its arguments; found on the PATH of `environment` unless it has a slash. */
  readonly command: readonly string[];
  /** The complete environment of the program. */
  readonly environment: Readonly<Record<string, string>>;
  readonly streams: Streams;
  /** A folder that is empty for the program, which gets its own mount namespace. */
  readonly cover?: string | undefined;
  /** The folder that `isClaimed` checks. */
  readonly claim?: string | undefined;
}

/**
 * The standard streams of a launched program, which its children inherit: `null` is the host's null device, `closed` are sockets whose
 * other end is closed when the program has ended.
 */
export type Streams = 'null' | 'closed';

export class HostCallError extends Error {
  readonly errno: string;
  readonly call: string;

  constructor(call: string, errno: string, message: string) {
    super(`${call}: ${message} (${errno})`);
    this.name = 'HostCallError';
    this.call = call;
    this.errno = errno;
  }
}
