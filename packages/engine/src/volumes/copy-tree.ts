import { PlatformError } from '@svc/contract/errors';
import type { ChannelFiles, FileEntry } from '@svc/contract/channel';

/** Copies a file, a link, or a folder with its content, to a path that does not exist. Links are copied, not followed. */
export async function copyTree(
  files: ChannelFiles,
  entry: FileEntry,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  switch (entry.kind) {
    case 'symlink':
      await files.symlink(await files.readLink(entry.path, signal), to, signal);
      return;
    case 'file':
      await files.copy(entry.path, to, signal);
      break;
    case 'dir':
      await files.mkdir(to, { mode: 0o700 }, signal);
      for await (const child of files.readDirectory(entry.path, signal)) {
        await copyTree(files, child, `${to}${child.path.slice(child.path.lastIndexOf('/'))}`, signal);
      }
      break;
    case 'other':
      throw new PlatformError('invalid_request', 'Only files, folders and links can be copied', {
        details: { path: entry.path.slice(1) },
      });
  }
  // The mode of a folder is set last: it may forbid writing inside.
  await files.setStat(to, keptAttributes(entry), { followSymlink: false }, signal);
}

/** Owner and permissions, without the set-user-id and set-group-id bits. */
export function keptAttributes(entry: FileEntry): { mode: number; uid: number; gid: number } {
  return { mode: entry.mode & 0o1777, uid: entry.uid, gid: entry.gid };
}
