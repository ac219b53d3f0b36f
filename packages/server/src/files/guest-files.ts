import { posix } from 'node:path';
import {
  FileFailed,
  PlatformError,
  type ChannelFiles,
  type FileEntry,
  type FileMetadata,
} from '@svc/contract';
import type { ChannelPool } from '../orchestrator/channel-pool.ts';
import { boundedBy } from '../processes/explain-failure.ts';
import { eachLimited } from '../tasks/each-limited.ts';
import { explainFileFailure } from './explain-file-failure.ts';
import { PASSWD, type GuestUsers, type OwnerIds } from './guest-users.ts';
import { openContent, type FileContent } from './open-content.ts';
import { RecentUsers } from './recent-users.ts';
import { walkFolder, type Walk } from './walk-folder.ts';

const PERMISSIONS = 0o7777;
const MS_PER_SECOND = 1000;
/** How many links and metadata are looked up at once for one list. */
const MAX_LOOKUPS = 16;
const FOLDER_MODE = 0o755;

/** A place in a running sandbox; the path is absolute. */
export interface FilePlace {
  readonly sandboxId: string;
  readonly path: string;
}

export type FileKind = FileEntry['kind'];

/** A file, folder or link of a sandbox. Of a link everything but `link` is about the link itself. */
export interface FileInfo {
  readonly path: string;
  readonly kind: FileKind;
  readonly size: number;
  /** Permission bits. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Names; the number where there is none. */
  readonly owner: string;
  readonly group: string;
  readonly modifiedAt: string | null;
  /** Where a link ends, with all links resolved; null when that is missing, and for others. */
  readonly link: LinkEnd | null;
  /** Extended attributes in the namespace `user`, without that prefix; of files and folders. */
  readonly metadata: FileMetadata;
}

export interface LinkEnd {
  readonly target: string;
  readonly kind: FileKind;
  readonly mode: number;
}

export interface OwnerAndMode {
  /** `user` or `user:group`, names of the sandbox or numbers; or ids that were looked up before. */
  readonly owner?: string | OwnerIds | undefined;
  /** Permission bits. */
  readonly mode?: number | undefined;
}

export interface NewEntryOptions extends OwnerAndMode {
  /** Makes the folders that lead to it, too, with the same owner. */
  readonly parents?: boolean | undefined;
}

export interface NewFileOptions extends NewEntryOptions {
  /** Absent: none, also when a file is replaced that has some. */
  readonly metadata?: FileMetadata | undefined;
}

/**
 * Files of running sandboxes, with the rights of root in them. Callers have checked that the sandbox is theirs, and record what was
 * changed. Errors are PlatformErrors that name the path.
 */
export class GuestFiles {
  readonly #channels: Pick<ChannelPool, 'get' | 'explainBreak'>;
  readonly #users = new RecentUsers();

  constructor(channels: Pick<ChannelPool, 'get' | 'explainBreak'>) {
    this.#channels = channels;
  }

  async stat(place: FilePlace, signal: AbortSignal): Promise<FileInfo> {
    return await this.#use(place, (guest) => describe(guest, place.path, boundedBy(signal)));
  }

  /** Each folder before its content, by name. A link as the place itself is followed. */
  async list(place: FilePlace, walk: Walk, signal: AbortSignal): Promise<readonly FileInfo[]> {
    return await this.#use(place, async (guest) => {
      const { files } = guest;
      const { kind } = await files.stat(place.path, {}, boundedBy(signal));
      if (kind !== 'dir') throw new FileFailed('is no folder', 'EINVAL');
      const entries: FileEntry[] = [];
      for await (const entry of walkFolder(files, place.path, walk, signal)) {
        if (entries.push(entry) >= walk.limit) break;
      }
      return await describeAll(guest, entries, signal);
    });
  }

  /** The content is read as it is taken, and its handle is closed when it ends or the signal aborts. */
  async read(
    place: FilePlace,
    { range }: { readonly range?: string | undefined },
    signal: AbortSignal,
  ): Promise<FileContent> {
    const explain = (error: unknown) =>
      explainFileFailure(this.#channels, place.sandboxId, place.path, error);
    return await this.#use(place, ({ files }) =>
      openContent(files, { path: place.path, range, explain }, signal),
    );
  }

  /**
   * Creates or replaces a file: readers see the old one until the new one is complete, and nothing is left of a write that fails.
   * Owner and mode of a replaced file stay unless given; a new one is root's, 0644. A link is replaced itself.
   */
  async write(
    place: FilePlace,
    content: AsyncIterable<Uint8Array>,
    { owner, mode, metadata, parents = false }: NewFileOptions,
    signal: AbortSignal,
  ): Promise<FileInfo> {
    const { path } = place;
    return await this.#use(place, async (guest) => {
      const { files } = guest;
      const ids = await idsOf(guest, owner, boundedBy(signal));
      const before = await find(files, path, boundedBy(signal));
      if (before?.kind === 'dir') throw new FileFailed('is a folder', 'EISDIR');
      if (before === undefined && parents) await makeParents(files, path, ids, signal);
      const given = {
        ...(mode === undefined ? {} : { mode }),
        ...(metadata === undefined ? {} : { metadata }),
      };
      await files.replaceFile(path, content, { ...ids, ...given }, signal);
      return await describe(guest, path, signal);
    });
  }

  /** @throws PlatformError `name_already_exists` when there is something at the path */
  async makeFolder(
    place: FilePlace,
    { owner, mode = FOLDER_MODE, parents = false }: NewEntryOptions,
    callerSignal: AbortSignal,
  ): Promise<FileInfo> {
    const { path } = place;
    return await this.#use(place, async (guest) => {
      const { files } = guest;
      const signal = boundedBy(callerSignal);
      const ids = await idsOf(guest, owner, signal);
      await requireFree(files, path, signal);
      if (parents) await makeParents(files, path, ids, signal);
      else await files.stat(posix.dirname(path), {}, signal);
      await files.mkdir(path, { mode }, signal);
      await files.setStat(path, { ...ids, mode }, {}, signal);
      return await describe(guest, path, signal);
    });
  }

  /** @throws PlatformError `name_already_exists` when there is something at `to`, unless it may be overwritten */
  async move(
    { sandboxId, path: from }: FilePlace,
    to: string,
    {
      owner,
      parents = false,
      overwrite = false,
    }: Omit<NewEntryOptions, 'mode'> & { readonly overwrite?: boolean | undefined },
    callerSignal: AbortSignal,
  ): Promise<FileInfo> {
    await this.stat({ sandboxId, path: from }, callerSignal);
    return await this.#use({ sandboxId, path: to }, async (guest) => {
      const { files } = guest;
      const signal = boundedBy(callerSignal);
      if (!overwrite) await requireFree(files, to, signal);
      if (parents) await makeParents(files, to, await idsOf(guest, owner, signal), signal);
      await files.rename(from, to, signal);
      return await describe(guest, to, signal);
    });
  }

  async remove(
    place: FilePlace,
    { recursive }: { readonly recursive: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { path } = place;
    if (path === '/') {
      const reason = 'must not be the root of the sandbox';
      throw new PlatformError('invalid_request', `path ${reason}`, { details: { field: 'path', reason } });
    }
    await this.#use(place, async ({ files }) => {
      const { kind } = await files.stat(path, { followSymlink: false }, boundedBy(signal));
      if (kind === 'dir') await files.removeDir(path, { recursive }, signal);
      else await files.remove(path, signal);
    });
  }

  /** Follows links, like `chown` and `chmod`. */
  async change(
    place: FilePlace,
    { owner, mode, metadata }: OwnerAndMode & Pick<NewFileOptions, 'metadata'>,
    callerSignal: AbortSignal,
  ): Promise<FileInfo> {
    return await this.#use(place, async (guest) => {
      const { files } = guest;
      const signal = boundedBy(callerSignal);
      const ids = await idsOf(guest, owner, signal);
      await files.setStat(place.path, { ...ids, mode }, {}, signal);
      if (metadata !== undefined) await files.setMetadata(place.path, metadata, signal);
      return await describe(guest, place.path, signal);
    });
  }

  async users(sandboxId: string, signal: AbortSignal): Promise<GuestUsers> {
    const place = { sandboxId, path: PASSWD };
    return await this.#use(place, ({ users }) => users(boundedBy(signal)));
  }

  async #use<T>({ sandboxId, path }: FilePlace, work: (guest: Guest) => Promise<T>): Promise<T> {
    const { files } = await this.#channels.get(sandboxId);
    const users = async (signal: AbortSignal) => await this.#users.read(sandboxId, files, signal);
    try {
      return await work({ files, users });
    } catch (error) {
      throw await explainFileFailure(this.#channels, sandboxId, path, error);
    }
  }
}

/** The files of one sandbox, and who its users are. */
interface Guest {
  readonly files: ChannelFiles;
  readonly users: (signal: AbortSignal) => Promise<GuestUsers>;
}

async function idsOf(
  { users }: Guest,
  owner: OwnerAndMode['owner'],
  signal: AbortSignal,
): Promise<OwnerIds | undefined> {
  return typeof owner === 'string' ? (await users(signal)).idsOf(owner) : owner;
}

/** A link counts as itself. Undefined when there is nothing. */
async function find(files: ChannelFiles, path: string, signal: AbortSignal): Promise<FileEntry | undefined> {
  try {
    return await files.stat(path, { followSymlink: false }, signal);
  } catch (error) {
    if (error instanceof FileFailed && error.errnoName === 'ENOENT') return undefined;
    throw error;
  }
}

async function requireFree(files: ChannelFiles, path: string, signal: AbortSignal): Promise<void> {
  const there = await find(files, path, signal);
  if (there === undefined) return;
  const kind = there.kind === 'dir' ? 'folder' : there.kind === 'symlink' ? 'link' : 'file';
  const message = `${path}: there is a ${kind} already; remove it first, or choose another path`;
  throw new PlatformError('name_already_exists', message, { details: { path, errno: 'EEXIST', kind } });
}

/** Makes the folders that lead to a path; those that are there stay as they are. */
async function makeParents(
  files: ChannelFiles,
  path: string,
  ids: OwnerIds | undefined,
  signal: AbortSignal,
): Promise<void> {
  const missing: string[] = [];
  let folder = posix.dirname(path);
  while (folder !== '/' && (await find(files, folder, signal)) === undefined) {
    missing.unshift(folder);
    folder = posix.dirname(folder);
  }
  for (const each of missing) {
    await files.mkdir(each, {}, signal);
    if (ids !== undefined) await files.setStat(each, ids, {}, signal);
  }
}

async function describe(guest: Guest, path: string, signal: AbortSignal): Promise<FileInfo> {
  const entry = await guest.files.stat(path, { followSymlink: false }, signal);
  const [info] = await describeAll(guest, [{ ...entry, path }], signal);
  if (info === undefined) throw new Error('a described entry is missing');
  return info;
}

async function describeAll(
  { files, users: read }: Guest,
  entries: readonly FileEntry[],
  signal: AbortSignal,
): Promise<readonly FileInfo[]> {
  // Most files are root's, whose name needs no look into the sandbox.
  const isNamed = entries.some(({ uid, gid }) => uid !== 0 || gid !== 0);
  const users = isNamed ? await read(signal) : null;
  const ends = new Map<string, LinkEnd | null>();
  const metadata = new Map<string, FileMetadata>();
  await eachLimited(entries, MAX_LOOKUPS, async ({ path, kind }) => {
    if (kind === 'symlink') ends.set(path, await findLinkEnd(files, path, signal));
    if (kind === 'file' || kind === 'dir') metadata.set(path, await findMetadata(files, path, signal));
  });
  return entries.map(({ path, kind, size, mode, uid, gid, modifiedSeconds }) => ({
    path,
    kind,
    size,
    mode: mode & PERMISSIONS,
    uid,
    gid,
    owner: uid === 0 ? 'root' : (users?.userName(uid) ?? String(uid)),
    group: gid === 0 ? 'root' : (users?.groupName(gid) ?? String(gid)),
    modifiedAt: modifiedSeconds === null ? null : new Date(modifiedSeconds * MS_PER_SECOND).toISOString(),
    link: ends.get(path) ?? null,
    metadata: metadata.get(path) ?? {},
  }));
}

/** None of a file that was removed meanwhile, or where svc-init was started before it knew of metadata. */
async function findMetadata(files: ChannelFiles, path: string, signal: AbortSignal): Promise<FileMetadata> {
  try {
    return await files.metadata(path, signal);
  } catch (error) {
    if (error instanceof FileFailed) return {};
    throw error;
  }
}

async function findLinkEnd(files: ChannelFiles, path: string, signal: AbortSignal): Promise<LinkEnd | null> {
  try {
    const target = await files.realPath(path, signal);
    const { kind, mode } = await files.stat(target, {}, signal);
    return { target, kind, mode: mode & PERMISSIONS };
  } catch (error) {
    // Its target is missing, out of reach, or the link itself again.
    if (error instanceof FileFailed) return null;
    throw error;
  }
}
