import type { Mount } from '@svc/contract';
import { PlatformError, type ErrorCode } from '@svc/contract/errors';
import { DEFAULT_HOST_PERMISSIONS, DEFAULT_STAT_VIRTUALIZATION } from '@svc/contract/spec';
import type { BindOwner, HostCalls } from '../host/host-calls.ts';
import type { Slot } from '../network/network.ts';

/** The source of a mount: a path inside a folder of the host, or inside a volume, which stores guest ids. */
export interface Source {
  readonly root: string;
  readonly path: string;
  readonly isVolume: boolean;
}

/** Where a source is bound, and for which ids. */
export interface Stage {
  readonly staging: string;
  readonly slot: Slot;
}

/** Binds a source where a runtime finds it, with the owner and options that the guest is to see. */
export async function stageSource(
  hostCalls: HostCalls,
  source: Source,
  mount: Mount,
  { staging, slot }: Stage,
): Promise<void> {
  const [named, quotaMib] = [ownerOf(mount), quotaOf(mount)];
  const storedAs = source.isVolume ? 'volume' : 'folder';
  // A volume stores guest ids, so it is bound unchanged unless the caller chose an owner or a quota. A folder of the host belongs to one of
  // the host's users.
  const isPlain = source.isVolume && named === null && quotaMib === null;
  const owner = isPlain ? null : ({ storedAs, ...(named ?? ROOT), quotaMib, ...metadataOf(mount) } as const);
  await bindAt(hostCalls, staging, {
    root: source.root,
    path: source.path,
    readonly: mount.options?.readonly ?? false,
    noexec: mount.options?.noexec ?? false,
    idmap: { userPath: slot.userNamespace, idBase: slot.idBase, owner },
  });
}

/** The guest user who owns the host's files in the sandbox; null when the caller named none. */
export function ownerOf(mount: Mount): { readonly uid: number; readonly gid: number } | null {
  const { override_uid: uid, override_gid: gid } = mount.options ?? {};
  return typeof uid === 'number' && typeof gid === 'number' ? { uid, gid } : null;
}

function quotaOf(mount: Mount): number | null {
  return mount.type === 'bind' ? (mount.quota_mib ?? null) : null;
}

function metadataOf(mount: Mount): Pick<BindOwner, 'statVirtualization' | 'hostPermissions'> {
  const { stat_virtualization: stat, host_permissions: permissions } = mount.type === 'bind' ? mount : {};
  return {
    statVirtualization: stat ?? DEFAULT_STAT_VIRTUALIZATION,
    hostPermissions: permissions ?? DEFAULT_HOST_PERMISSIONS,
  };
}

const ROOT = { uid: 0, gid: 0 };

/** @throws PlatformError `invalid_sandbox_config` when the source cannot be bound */
export async function bindAt(
  hostCalls: HostCalls,
  target: string,
  request: Omit<Parameters<HostCalls['bind']>[0], 'target'>,
): Promise<void> {
  try {
    // Creates the target, a file for a file and a folder for a folder.
    await hostCalls.bind({ ...request, target });
  } catch (error) {
    throw explained(error, request.path, BIND_REASONS);
  }
}

/** Error code and sentence per errno; the sentence begins with the caller's name for the source. */
export type Reasons = readonly {
  readonly errnos: readonly string[];
  readonly code: ErrorCode;
  readonly says: string;
}[];

/** The error to throw instead; an errno without an entry stays as it is. */
export function explained(error: unknown, name: string, reasons: Reasons): unknown {
  const reason = reasons.find(({ errnos }) => errnos.some((errno) => isErrno(error, errno)));
  if (reason === undefined) return error;
  const details = { field: 'mounts' };
  return new PlatformError(reason.code, `mounts: ${name} ${reason.says}`, { details, cause: error });
}

const BIND_REASONS: Reasons = [
  {
    errnos: ['ENOENT', 'ENOTDIR', 'ELOOP', 'EXDEV'],
    code: 'invalid_sandbox_config',
    says: 'does not exist inside its root; create it first',
  },
  {
    errnos: ['ENODEV'],
    code: 'invalid_sandbox_config',
    says:
      'has to be served (it can be written to, or its file system cannot map ids), and this host has no FUSE to serve it with; ' +
      '`modprobe fuse`, or move it to ext4, xfs or btrfs and mount it read-only',
  },
  {
    errnos: ['EIO'],
    code: 'invalid_sandbox_config',
    says:
      'has to be served (it can be written to, or its file system cannot map ids), and its file system has no file handles ' +
      'to serve it by; move it to ext4, xfs or btrfs',
  },
  {
    errnos: ['EOPNOTSUPP'],
    code: 'invalid_sandbox_config',
    says:
      'lies on a file system without extended attributes, which stat_virtualization strict keeps owners and modes in; ' +
      'use relaxed or off, or move it to ext4, xfs or btrfs',
  },
];

function isErrno(error: unknown, errno: string): boolean {
  return error instanceof Error && 'errno' in error && error.errno === errno;
}
