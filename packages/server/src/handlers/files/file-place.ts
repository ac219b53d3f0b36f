import { posix } from 'node:path';
import { PlatformError } from '@svc/contract';
import type { FileInfo as FileView } from '@svc/contract/rest';
import type { Owner } from '../../access/fair-limit.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { FileInfo, FilePlace } from '../../files/guest-files.ts';
import type { Database } from '../../store/database.ts';
import type { OrganizationRecord } from '../../store/organizations.ts';
import { findOpenRun } from '../../store/processes.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { requireSandbox } from '../sandboxes/rest-sandboxes.ts';
import { workdirOf } from './sandbox-files.ts';

const OCTAL = 8;

/** A place in a sandbox of the caller's that runs. */
export async function placeOf(
  { database }: { readonly database: Database },
  call: RestCall,
  params: { readonly sandbox_id: string },
  path: string,
): Promise<FilePlace> {
  const sandbox = await requireSandbox(database, call, { id: params.sandbox_id });
  const absolute = pathIn(sandbox, path);
  await requireRun(database, sandbox);
  return { sandboxId: sandbox.id, path: absolute };
}

/** A relative path begins at the working directory of the sandbox. */
export function pathIn(sandbox: SandboxRecord, path: string): string {
  if (path.includes('\0')) throw badField('path', 'must not contain NUL');
  return posix.resolve(workdirOf(sandbox), path);
}

/** @throws PlatformError `sandbox_not_running` */
export async function requireRun(database: Database, sandbox: SandboxRecord): Promise<void> {
  if ((await findOpenRun(database, sandbox.id)) !== undefined) return;
  const message = `Sandbox '${sandbox.name}' is ${sandbox.observed}; start it first`;
  throw new PlatformError('sandbox_not_running', message, { details: { state: sandbox.observed } });
}

/** Whose share of the transfers a call takes. */
export function ownerOf({
  isOperator,
  organization,
}: {
  readonly isOperator: boolean;
  readonly organization: OrganizationRecord;
}): Owner {
  return isOperator ? null : organization.slug;
}

export function modeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number.parseInt(text, OCTAL);
}

const KINDS = { file: 'file', dir: 'directory', symlink: 'symlink', other: 'other' } as const;

export function toView(info: FileInfo): FileView {
  const { path, kind, size, mode, uid, gid, owner, group, modifiedAt, link, metadata } = info;
  return {
    path,
    name: posix.basename(path),
    kind: KINDS[kind],
    size,
    mode: mode.toString(OCTAL).padStart(4, '0'),
    uid,
    gid,
    owner,
    group,
    modified_at: modifiedAt,
    metadata: { ...metadata },
    target: link?.target ?? null,
  };
}
