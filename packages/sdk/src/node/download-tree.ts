import { constants } from 'node:fs';
import { chmod, lstat, mkdir, open, rm, symlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import type { CallOptions } from '../client/call-budget.ts';
import { SvcError } from '../svc-error.ts';
import type { FileInfo } from '../sandbox/files.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { forEachOf, withinTree, type TreeOptions } from './tree-options.ts';

const PERMISSIONS = 0o777;
/** With the sticky bit, so that users cannot remove the files of other users. */
const FOLDER_PERMISSIONS = 0o1777;
const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;

interface RemoteFile {
  readonly info: FileInfo;
  readonly local: string;
}

/**
 * Copies a file or a folder of a sandbox with all that is in it to this machine: `localPath` is what it becomes here.
 * Permission bits and links are kept, owners are not; existing folders stay as they are.
 * The sandbox is not trusted: nothing is written outside `localPath`, links that would lead out of it are left out, and
 * so are set-user-id bits, sockets and devices.
 * @throws SvcError `invalid_request` for a file whose name is not UTF-8, which cannot be asked for
 * @returns the links that were left out, as paths in the sandbox
 */
export async function downloadTree(
  sandbox: Sandbox,
  remotePath: string,
  localPath: string,
  options: TreeOptions = {},
): Promise<{ readonly skippedLinks: readonly string[] }> {
  return await withinTree(options, async (call) => {
    const { files, links, folders } = await makeFolders(sandbox, remotePath, localPath, call);
    await forEachOf(files, call, async ({ info, local }, each) => {
      await writeLocal(local, info.mode, sandbox.files.readStream(info.path, each));
      options.onFile?.(info.path, info.sizeBytes);
    });
    // SAFETY: links come last, so that no file is written through one that the sandbox chose.
    const skippedLinks: string[] = [];
    for (const { info, local } of links) {
      const target = await sandbox.files.readLink(info.path, call);
      if (leadsOut(remotePath, info.path, target)) skippedLinks.push(info.path);
      else await putLink(target, local);
    }
    // The deepest first, because some folders become read-only.
    for (const { info, local } of folders.toReversed()) await chmod(local, info.mode & FOLDER_PERMISSIONS);
    return { skippedLinks };
  });
}

interface FoundTree {
  readonly files: readonly RemoteFile[];
  readonly links: readonly RemoteFile[];
  /** New folders, a folder before its content. */
  readonly folders: readonly RemoteFile[];
}

/** Creates the folders of a tree and collects its files and links. */
async function makeFolders(
  sandbox: Sandbox,
  remotePath: string,
  localPath: string,
  call: CallOptions,
): Promise<FoundTree> {
  const found = { files: [] as RemoteFile[], links: [] as RemoteFile[], folders: [] as RemoteFile[] };
  const visit = async (info: FileInfo, local: string): Promise<void> => {
    call.signal?.throwIfAborted();
    if (info.kind === 'file') found.files.push({ info, local });
    else if (info.kind === 'symlink') found.links.push({ info, local });
    else if (info.kind === 'directory') {
      if (await makeFolder(local)) found.folders.push({ info, local });
      for (const child of await sandbox.files.list(info.path, call)) {
        // SAFETY: the name is one part, neither `.` nor `..`, so the joined path stays inside the folder.
        await visit(child, join(local, requirePlainName(child.name)));
      }
    }
  };
  await visit(await sandbox.files.stat(remotePath, call), localPath);
  return found;
}

function requirePlainName(name: string): string {
  if (name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !name.includes('\0'))
    return name;
  throw new SvcError('invalid_request', `The sandbox has a file whose name '${name}' is none`);
}

/** False when it exists already. SAFETY: a link at this path is not followed. */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    if (!isErrno(error, 'EEXIST') || !(await lstat(path)).isDirectory()) throw error;
    return false;
  }
}

/** SAFETY: O_NOFOLLOW, because a link of this name may lead anywhere. */
async function writeLocal(path: string, mode: number, content: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode & PERMISSIONS);
  try {
    await file.writeFile(content);
    await file.chmod(mode & PERMISSIONS);
  } finally {
    await file.close();
  }
}

function leadsOut(root: string, link: string, target: string): boolean {
  if (posix.isAbsolute(target)) return true;
  const path = posix.relative(root, posix.join(posix.dirname(link), target));
  return path === '..' || path.startsWith('../');
}

async function putLink(target: string, local: string): Promise<void> {
  await rm(local, { force: true });
  await mkdir(dirname(local), { recursive: true });
  await symlink(target, local);
}
