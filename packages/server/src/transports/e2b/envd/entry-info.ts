import { posix } from 'node:path';
import type { ChannelFiles, FileEntry } from '@svc/contract';
import type { Accounts } from './accounts.ts';

const PERMISSIONS = 0o777;
const MS_PER_SECOND = 1000;
const TYPES = { file: 'FILE_TYPE_FILE', dir: 'FILE_TYPE_DIRECTORY' } as const;
const NO_TYPE = 'FILE_TYPE_UNSPECIFIED';
const TRIPLES = ['---', '--x', '-w-', '-wx', 'r--', 'r-x', 'rw-', 'rwx'] as const;

/** A file as E2B's clients read it. Of a link the type and mode are those of its target, everything else its own. */
export async function toEntryInfo(
  files: ChannelFiles,
  accounts: Accounts,
  entry: FileEntry,
  signal: AbortSignal,
): Promise<object> {
  const link = entry.kind === 'symlink' ? await readTarget(files, entry.path, signal) : undefined;
  const shown = link?.entry ?? entry;
  const type = shown.kind === 'file' || shown.kind === 'dir' ? TYPES[shown.kind] : NO_TYPE;
  const mode = shown.mode & PERMISSIONS;
  return {
    name: posix.basename(entry.path),
    type,
    path: entry.path,
    size: String(entry.size),
    mode,
    permissions: `${letterOf(entry)}${permissionsOf(mode)}`,
    owner: accounts.ownerName(entry.uid),
    group: accounts.groupName(entry.gid),
    modifiedTime: new Date((entry.modifiedSeconds ?? 0) * MS_PER_SECOND).toISOString(),
    ...(link === undefined ? {} : { symlinkTarget: link.path }),
  };
}

/** Where all links lead; a link that leads nowhere has its own path. */
async function readTarget(
  files: ChannelFiles,
  path: string,
  signal: AbortSignal,
): Promise<{ readonly path: string; readonly entry: FileEntry | undefined }> {
  try {
    const [target, entry] = await Promise.all([files.realPath(path, signal), files.stat(path, {}, signal)]);
    return { path: target, entry };
  } catch {
    return { path, entry: undefined };
  }
}

function letterOf({ kind }: FileEntry): string {
  if (kind === 'symlink') return 'L';
  return kind === 'dir' ? 'd' : '-';
}

/** Three letters each for owner, group and others. */
function permissionsOf(mode: number): string {
  return [6, 3, 0].map((shift) => TRIPLES[(mode >> shift) & 7]).join('');
}
