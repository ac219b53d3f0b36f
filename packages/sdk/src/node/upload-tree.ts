import { createReadStream } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { forEachOf, type TreeOptions } from './tree-options.ts';

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
 * links are kept; owners are not. What is there already is replaced or added to. Sockets and devices are left out.
 */
export async function uploadTree(
  sandbox: Sandbox,
  localPath: string,
  remotePath: string,
  options: TreeOptions = {},
): Promise<void> {
  const { onFile, ...call } = options;
  const found: LocalFile[] = [];
  const visit = async (local: string, remote: string): Promise<void> => {
    call.signal?.throwIfAborted();
    const stats = await lstat(local);
    if (stats.isSymbolicLink()) await putLink(sandbox, await readlink(local), remote, call);
    else if (stats.isFile()) {
      found.push({ local, remote, sizeBytes: stats.size, mode: stats.mode & PERMISSIONS });
    } else if (stats.isDirectory()) {
      await sandbox.files.mkdir(remote, call);
      for (const name of await readdir(local)) await visit(join(local, name), posix.join(remote, name));
    }
  };
  await visit(localPath, remotePath);
  await forEachOf(found, async ({ local, remote, sizeBytes, mode }) => {
    const content = createReadStream(local, { highWaterMark: CHUNK_BYTES });
    await sandbox.files.write(remote, content, { ...call, mode });
    // The mode of a write counts for new files, and the sandbox's mask takes from it.
    await sandbox.files.chmod(remote, mode, call);
    onFile?.(remote, sizeBytes);
  });
}

async function putLink(
  sandbox: Sandbox,
  target: string,
  remote: string,
  call: Pick<TreeOptions, 'signal' | 'timeoutMs'>,
): Promise<void> {
  const there = await sandbox.files.exists(remote, call);
  if (there) await sandbox.files.remove(remote, call);
  await sandbox.files.symlink(target, remote, call);
}
