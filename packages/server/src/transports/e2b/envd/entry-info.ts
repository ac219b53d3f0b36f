import { posix } from 'node:path';
import type { FileInfo } from '../../../files/guest-files.ts';
import { metadataOf } from '../wire/file-metadata.ts';

const PERMISSIONS = 0o777;
const TYPES = { file: 'FILE_TYPE_FILE', dir: 'FILE_TYPE_DIRECTORY' } as const;
const NO_TYPE = 'FILE_TYPE_UNSPECIFIED';
const NO_TIME = new Date(0).toISOString();
const TRIPLES = ['---', '--x', '-w-', '-wx', 'r--', 'r-x', 'rw-', 'rwx'] as const;

/**
 * A file as E2B's clients read it. Of a link the type and mode are those of its target, everything else its own; one that leads nowhere
 * has its own path as its target.
 */
export function toEntryInfo(info: FileInfo): object {
  const { path, size, owner, group, modifiedAt, link } = info;
  const { kind, mode } = link ?? info;
  const bits = mode & PERMISSIONS;
  return {
    name: posix.basename(path),
    type: kind === 'file' || kind === 'dir' ? TYPES[kind] : NO_TYPE,
    path,
    size: String(size),
    mode: bits,
    permissions: `${letterOf(info)}${permissionsOf(bits)}`,
    owner,
    group,
    modifiedTime: modifiedAt ?? NO_TIME,
    ...(info.kind === 'symlink' ? { symlinkTarget: link?.target ?? path } : {}),
    metadata: metadataOf(info),
  };
}

function letterOf({ kind }: FileInfo): string {
  if (kind === 'symlink') return 'L';
  return kind === 'dir' ? 'd' : '-';
}

/** Three letters each for owner, group and others. */
function permissionsOf(mode: number): string {
  return [6, 3, 0].map((shift) => TRIPLES[(mode >> shift) & 7]).join('');
}
