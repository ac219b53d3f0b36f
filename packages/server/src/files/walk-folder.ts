import { posix } from 'node:path';
import type { ChannelFiles, FileEntry } from '@svc/contract';

/** How many times the wanted number of names is gathered before the excess is dropped. */
const SLACK = 4;

export interface Walk {
  /** How many levels; 1: the children alone. */
  readonly depth: number;
  /** At most so many entries are taken by the caller. */
  readonly limit: number;
  /** The path below the folder of the last entry that is known already; the walk goes on behind it. */
  readonly after?: string | undefined;
}

/**
 * Walks a folder depth first, by name: each folder before its content. Links are not followed. Memory is bounded by depth and limit,
 * regardless of how much a folder holds: of each folder only the first names that are still wanted are kept.
 */
export async function* walkFolder(
  files: ChannelFiles,
  folder: string,
  { depth, limit, after }: Walk,
  signal: AbortSignal,
): AsyncGenerator<FileEntry, void> {
  const [known, ...below] = after?.split('/') ?? [];
  for (const { name, entry } of await firstEntries(files, folder, { limit, from: known }, signal)) {
    const isKnown = name === known;
    if (!isKnown) yield entry;
    if (entry.kind !== 'dir' || depth <= 1) continue;
    const rest = isKnown && below.length > 0 ? below.join('/') : undefined;
    yield* walkInto(files, entry.path, { depth: depth - 1, limit, after: rest }, signal);
  }
}

/** A folder that was removed meanwhile, or that is no folder any more, holds nothing. */
async function* walkInto(
  files: ChannelFiles,
  folder: string,
  walk: Walk,
  signal: AbortSignal,
): AsyncGenerator<FileEntry, void> {
  if (!(await isFolder(files, folder, signal))) return;
  yield* walkFolder(files, folder, walk, signal);
}

async function isFolder(files: ChannelFiles, path: string, signal: AbortSignal): Promise<boolean> {
  if (!(await files.exists(path, signal))) return false;
  return (await files.stat(path, { followSymlink: false }, signal)).kind === 'dir';
}

interface NamedEntry {
  readonly name: string;
  readonly entry: FileEntry;
}

/** The first children by name, from `from` on, itself included. */
async function firstEntries(
  files: ChannelFiles,
  folder: string,
  { limit, from }: { readonly limit: number; readonly from: string | undefined },
  signal: AbortSignal,
): Promise<readonly NamedEntry[]> {
  // The last one that is known comes on top of those that are wanted.
  const wanted = limit + 1;
  let kept: NamedEntry[] = [];
  for await (const found of files.readDirectory(folder, signal)) {
    const name = posix.basename(found.path);
    if (from !== undefined && name < from) continue;
    kept.push({ name, entry: { ...found, path: posix.join(folder, name) } });
    if (kept.length >= wanted * SLACK) kept = firstOf(kept, wanted);
  }
  return firstOf(kept, wanted);
}

function firstOf(entries: readonly NamedEntry[], count: number): NamedEntry[] {
  return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)).slice(0, count);
}
