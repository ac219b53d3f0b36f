import { isUtf8 } from 'node:buffer';
import { createReadStream, type Stats } from 'node:fs';
import { lstat, readdir, readlink, stat } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { CallOptions } from '../client/call-budget.ts';
import { SvcError } from '../svc-error.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { forEachOf, notUtf8, withinTree, type TreeOptions } from './tree-options.ts';

const CHUNK_BYTES = 1024 * 1024;
const PERMISSIONS = 0o7777;

interface LocalFile {
  readonly local: string;
  readonly remote: string;
  readonly sizeBytes: number;
  readonly mode: number;
}

/**
 * Copies a file or a folder with all that is in it into a sandbox: `remotePath` is what it becomes there. Permission bits and
 * links are kept, owners are not; `localPath` itself may be a link, which is followed. Existing files are replaced, existing
 * folders are added to and otherwise stay as they are. Sockets and devices are left out.
 * @throws SvcError `invalid_request` for a file whose name is not UTF-8, which cannot be sent
 */
export async function uploadTree(
  sandbox: Sandbox,
  localPath: string,
  remotePath: string,
  options: TreeOptions = {},
): Promise<void> {
  await withinTree(options, async (call) => {
    const { files, folders } = await putFolders(sandbox, localPath, remotePath, call);
    await forEachOf(files, call, async ({ local, remote, sizeBytes, mode }, each) => {
      const content = createReadStream(local, { highWaterMark: CHUNK_BYTES });
      // A sandbox that refuses the file does so before anything of it was read.
      await sandbox.files.write(remote, content, { ...each, mode }).finally(() => content.destroy());
      // The mode of a write counts for new files, and the sandbox's mask takes from it.
      await sandbox.files.chmod(remote, mode, each);
      options.onFile?.(remote, sizeBytes);
    });
    // Last, and the deepest first, because some folders become read-only.
    for (const { remote, mode } of folders.toReversed()) await sandbox.files.chmod(remote, mode, call);
  });
}

interface FoundTree {
  readonly files: readonly LocalFile[];
  /** New folders, a folder before its content. */
  readonly folders: readonly Pick<LocalFile, 'remote' | 'mode'>[];
}

/** Creates the folders and links of a tree and collects its files. */
async function putFolders(
  sandbox: Sandbox,
  localPath: string,
  remotePath: string,
  call: CallOptions,
): Promise<FoundTree> {
  const files: LocalFile[] = [];
  const folders: Pick<LocalFile, 'remote' | 'mode'>[] = [];
  const visit = async (local: string, remote: string, stats: Stats, isInNew: boolean): Promise<void> => {
    call.signal?.throwIfAborted();
    const mode = stats.mode & PERMISSIONS;
    if (stats.isSymbolicLink()) await putLink(sandbox, await readlink(local), remote, call);
    else if (stats.isFile()) files.push({ local, remote, sizeBytes: stats.size, mode });
    else if (stats.isDirectory()) {
      const isNew = isInNew || !(await sandbox.files.exists(remote, call));
      await sandbox.files.mkdir(remote, call);
      if (isNew) folders.push({ remote, mode });
      for (const name of await readNames(local)) {
        const child = join(local, name);
        await visit(child, posix.join(remote, name), await lstat(child), isNew);
      }
    }
  };
  await visit(localPath, remotePath, await stat(localPath), false);
  return { files, folders };
}

/** @throws SvcError for the first one that is not UTF-8 */
async function readNames(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { encoding: 'buffer' });
  return names.map((name) => {
    if (isUtf8(name)) return name.toString();
    throw notUtf8(join(folder, name.toString()));
  });
}

async function putLink(sandbox: Sandbox, target: string, remote: string, call: CallOptions): Promise<void> {
  try {
    await sandbox.files.symlink(target, remote, call);
  } catch (error) {
    if (!SvcError.is(error, 'name_already_exists')) throw error;
    await sandbox.files.remove(remote, call);
    await sandbox.files.symlink(target, remote, call);
  }
}
