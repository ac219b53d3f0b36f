import { posix } from 'node:path';
import { FileFailed, type ChannelFiles, type FileEntry } from '@svc/contract';
import { boundedBy } from '../../../processes/explain-failure.ts';
import { pathFor, type Account, type Accounts } from './accounts.ts';
import { ConnectError } from '../wire/connect-error.ts';
import { noteFile } from '../wire/note-file.ts';
import { toEntryInfo } from './entry-info.ts';
import type { EnvdCall } from './envd-call.ts';
import { textIn, wholeIn, type Message } from './message-fields.ts';

/** Entries of one answer, which is made in memory. */
const MAX_ENTRIES = 50_000;
const FOLDER_MODE = 0o755;

interface Place {
  readonly files: ChannelFiles;
  readonly accounts: Accounts;
  readonly account: Account;
}

export async function stat(call: EnvdCall, message: Message): Promise<object> {
  const place = await placeOf(call);
  return { entry: await describe(place, pathIn(place, message, 'path'), call) };
}

export async function listDir(call: EnvdCall, message: Message): Promise<object> {
  const place = await placeOf(call);
  const path = pathIn(place, message, 'path');
  const root = await place.files.stat(path, {}, boundedBy(call.signal)).catch(explain(path));
  if (root.kind !== 'dir') throw new ConnectError('invalid_argument', `path is not a directory: ${path}`);
  const entries: object[] = [];
  for await (const entry of walk(place.files, path, Math.max(1, wholeIn(message, 'depth')), call.signal)) {
    if (entries.length === MAX_ENTRIES)
      throw new ConnectError(
        'resource_exhausted',
        `${path} has more than ${MAX_ENTRIES} entries; list parts of it`,
      );
    entries.push(await toEntryInfo(place.files, place.accounts, entry, call.signal));
  }
  return { entries };
}

export async function makeDir(call: EnvdCall, message: Message): Promise<object> {
  const place = await placeOf(call);
  const path = pathIn(place, message, 'path');
  const found = await find(place.files, path, call.signal);
  if (found?.kind === 'dir') throw new ConnectError('already_exists', `directory already exists: ${path}`);
  if (found !== undefined)
    throw new ConnectError('invalid_argument', `path already exists but it is not a directory: ${path}`);
  await makeFolder(place.files, path, place.account, call.signal);
  await noteFile(call.parts, call.of, { type: 'folder_created', path });
  return { entry: await describe(place, path, call) };
}

export async function move(call: EnvdCall, message: Message): Promise<object> {
  const place = await placeOf(call);
  const [source, destination] = [pathIn(place, message, 'source'), pathIn(place, message, 'destination')];
  await place.files.stat(source, { followSymlink: false }, boundedBy(call.signal)).catch(explain(source));
  await makeFolder(place.files, posix.dirname(destination), place.account, call.signal);
  await place.files.rename(source, destination, call.signal).catch(explain(source));
  await noteFile(call.parts, call.of, { type: 'file_moved', from: source, to: destination });
  return { entry: await describe(place, destination, call) };
}

/** A path that is not there counts as removed. */
export async function remove(call: EnvdCall, message: Message): Promise<object> {
  const place = await placeOf(call);
  const path = pathIn(place, message, 'path');
  const found = await find(place.files, path, call.signal, { followSymlink: false });
  if (found === undefined) return {};
  const recursive = found.kind === 'dir';
  if (recursive) await place.files.removeDir(path, { recursive: true }, call.signal);
  else await place.files.remove(path, call.signal);
  await noteFile(call.parts, call.of, { type: 'file_removed', path, recursive });
  return {};
}

/** Makes a folder and those that lead to it, for this account; those that are there stay as they are. */
export async function makeFolder(
  files: ChannelFiles,
  path: string,
  { uid, gid }: Account,
  signal: AbortSignal,
): Promise<void> {
  const missing: string[] = [];
  for (let at = path; at !== '/'; at = posix.dirname(at)) {
    const found = await find(files, at, signal);
    if (found?.kind === 'dir') break;
    if (found !== undefined) throw new ConnectError('invalid_argument', `${at} is not a directory`);
    missing.push(at);
  }
  if (missing.length === 0) return;
  await files.mkdir(path, { mode: FOLDER_MODE }, signal);
  for (const made of missing) await files.setStat(made, { uid, gid }, {}, signal);
}

/** Undefined when there is nothing at the path. */
export async function find(
  files: ChannelFiles,
  path: string,
  signal: AbortSignal,
  options: { readonly followSymlink?: boolean } = {},
): Promise<FileEntry | undefined> {
  try {
    return await files.stat(path, options, boundedBy(signal));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof FileFailed && error.platformCode === 'not_found';
}

/** Depth first and by name, a folder before what is in it. Links are not followed. */
async function* walk(
  files: ChannelFiles,
  folder: string,
  depth: number,
  signal: AbortSignal,
): AsyncGenerator<FileEntry, void> {
  const children: FileEntry[] = [];
  for await (const { path, ...entry } of files.readDirectory(folder, signal)) {
    children.push({ ...entry, path: posix.join(folder, posix.basename(path)) });
    if (children.length > MAX_ENTRIES) break;
  }
  for (const child of children.toSorted((one, other) => (one.path < other.path ? -1 : 1))) {
    yield child;
    if (child.kind === 'dir' && depth > 1) yield* walk(files, child.path, depth - 1, signal);
  }
}

async function placeOf(call: EnvdCall): Promise<Place> {
  const [files, accounts] = await Promise.all([call.files(), call.accounts()]);
  return { files, accounts, account: accounts.require(call.user) };
}

function pathIn({ account }: Place, message: Message, field: string): string {
  return pathFor(account, textIn(message, field));
}

async function describe({ files, accounts }: Place, path: string, { signal }: EnvdCall): Promise<object> {
  const entry = await files.stat(path, { followSymlink: false }, boundedBy(signal)).catch(explain(path));
  return await toEntryInfo(files, accounts, { ...entry, path }, signal);
}

function explain(path: string): (error: unknown) => never {
  return (error) => {
    if (isMissing(error)) throw new ConnectError('not_found', `path not found: ${path}`, { cause: error });
    throw error;
  };
}
