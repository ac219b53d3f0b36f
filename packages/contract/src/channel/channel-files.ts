import type { Payload } from '../frames/frame.ts';
import { abortable } from '../async/abort.ts';
import { ChannelError, FileFailed } from './channel-error.ts';
import { ChannelWatch } from './channel-watch.ts';
import type { AgentInfo, Connection } from './connection.ts';
import { encodeAttributes, encodeOpenFlags, readEntry } from './file-entry.ts';
import type { FileAttributes, FileEntry, OpenFlags } from './file-entry.ts';
import { readContent, requestFile, writeContent } from './file-transfer.ts';
import { own, readArray, readRecord, readText, readUint } from './payload-fields.ts';
import { partialPathOf } from './partial-file.ts';

/** Window of a streamed read: the sandbox never sends more than the reader has room for. */
const READ_WINDOW_BYTES = 2 * 1024 * 1024;
const DEFAULT_FILE_LIMIT_BYTES = 64 * 1024 * 1024;
/** Directory entries per answer. */
const DIRECTORY_PAGE = 1024;
const MISSING = new Set(['ENOENT', 'ENOTDIR']);
const PERMISSIONS = 0o7777;

/** Bytes from `start` up to, and without, `end`; at most `windowBytes` are asked for at once. */
export interface ContentPart {
  readonly start?: number;
  readonly end?: number;
  readonly windowBytes?: number;
}

export interface ReplacementOptions {
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  /** Absent: none. */
  readonly metadata?: FileMetadata;
}

/** Extended attributes of a file by their names, without `user.`; together 4096 bytes at most. */
export type FileMetadata = Readonly<Record<string, string>>;

/**
 * Files of a sandbox. Every call may fail with FileFailed (the sandbox's answer) or ChannelError (no usable answer), and
 * rejects at once when its signal aborts. Content is asked for in windows, so a slow reader of a file delays no other call.
 */
export class ChannelFiles {
  readonly #connection: Connection;
  readonly #agent: AgentInfo;
  readonly #requireSupport: () => void;

  constructor(connection: Connection, agent: AgentInfo, requireSupport: () => void) {
    this.#connection = connection;
    this.#agent = agent;
    this.#requireSupport = requireSupport;
  }

  async realPath(path: string, signal?: AbortSignal): Promise<string> {
    return readText(await this.#ask('RealPath', { path }, signal), 'Path');
  }

  async stat(
    path: string,
    options: { followSymlink?: boolean } = {},
    signal?: AbortSignal,
  ): Promise<FileEntry> {
    const answer = await this.#ask('Stat', { path, follow_symlink: options.followSymlink ?? true }, signal);
    return readEntry(own(answer, 'Stat'));
  }

  /** False when there is nothing at the path; any other trouble is thrown. */
  async exists(path: string, signal?: AbortSignal): Promise<boolean> {
    try {
      await this.stat(path, {}, signal);
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  async setStat(
    path: string,
    attributes: FileAttributes,
    options: { followSymlink?: boolean } = {},
    signal?: AbortSignal,
  ): Promise<void> {
    const attrs = encodeAttributes(attributes);
    await this.#ask('SetStat', { path, follow_symlink: options.followSymlink ?? true, attrs }, signal);
  }

  /** All children in one answer, with full paths. For directories of any size use `readDirectory`. */
  async list(path: string, signal?: AbortSignal): Promise<readonly FileEntry[]> {
    return readList(await this.#ask('List', { path }, signal));
  }

  async readLink(path: string, signal?: AbortSignal): Promise<string> {
    return readText(await this.#ask('ReadLink', { path }, signal), 'Path');
  }

  async symlink(target: string, linkPath: string, signal?: AbortSignal): Promise<void> {
    await this.#ask('Symlink', { target, link_path: linkPath }, signal);
  }

  /** Parents are made too; a directory that exists is fine. */
  async mkdir(path: string, options: { mode?: number } = {}, signal?: AbortSignal): Promise<void> {
    await this.#ask('Mkdir', { path, mode: options.mode ?? null }, signal);
  }

  /** Anything but a directory. */
  async remove(path: string, signal?: AbortSignal): Promise<void> {
    await this.#ask('Remove', { path }, signal);
  }

  async removeDir(path: string, options: { recursive?: boolean } = {}, signal?: AbortSignal): Promise<void> {
    await this.#ask('RemoveDir', { path, recursive: options.recursive ?? false }, signal);
  }

  /** A single file. */
  async copy(src: string, dst: string, signal?: AbortSignal): Promise<void> {
    await this.#ask('Copy', { src, dst }, signal);
  }

  async rename(src: string, dst: string, signal?: AbortSignal): Promise<void> {
    await this.#ask('Rename', { src, dst }, signal);
  }

  async open(path: string, flags: OpenFlags, signal?: AbortSignal): Promise<number> {
    return await this.#openHandle('OpenFile', { path, options: encodeOpenFlags(flags) }, signal);
  }

  async openDir(path: string, signal?: AbortSignal): Promise<number> {
    return await this.#openHandle('OpenDir', { path }, signal);
  }

  async closeHandle(handle: number, signal?: AbortSignal): Promise<void> {
    await this.#ask('CloseHandle', { handle }, signal);
  }

  /** Fewer bytes than asked for only at the end of the file. */
  async read(
    handle: number,
    offset: number,
    lengthBytes: number,
    signal?: AbortSignal,
  ): Promise<readonly Uint8Array[]> {
    this.#requireSupport();
    const request = { operation: 'Read', fields: { handle, offset, len: lengthBytes } };
    return await readContent(this.#connection, request, lengthBytes, signal);
  }

  async write(
    handle: number,
    offset: number,
    content: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    this.#requireSupport();
    const request = { operation: 'Write', fields: { handle, offset, len: null } };
    await writeContent(this.#connection, request, content, signal);
  }

  /** The next children, none at the end. */
  async readDir(handle: number, limit: number, signal?: AbortSignal): Promise<readonly FileEntry[]> {
    return readList(await this.#ask('ReadDir', { handle, limit }, signal));
  }

  async fstat(handle: number, signal?: AbortSignal): Promise<FileEntry> {
    return readEntry(own(await this.#ask('FStat', { handle }, signal), 'Stat'));
  }

  async fsetstat(handle: number, attributes: FileAttributes, signal?: AbortSignal): Promise<void> {
    await this.#ask('FSetStat', { handle, attrs: encodeAttributes(attributes) }, signal);
  }

  /** All children, however many, in no order. */
  async *readDirectory(path: string, signal?: AbortSignal): AsyncGenerator<FileEntry, void> {
    const handle = await this.openDir(path, signal);
    try {
      for (;;) {
        const page = await this.readDir(handle, DIRECTORY_PAGE, signal);
        if (page.length === 0) return;
        yield* page;
      }
    } finally {
      this.release(handle);
    }
  }

  /** Whole content; a file beyond the limit (64 MiB unless given) is refused. */
  async readFile(
    path: string,
    options: { maxBytes?: number } = {},
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    const maxBytes = options.maxBytes ?? DEFAULT_FILE_LIMIT_BYTES;
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of this.readStream(path, signal)) {
      length += chunk.length;
      if (length > maxBytes)
        throw new FileFailed(`${path} has more than ${maxBytes} bytes; stream it`, 'EFBIG');
      chunks.push(chunk);
    }
    return join(chunks, length);
  }

  async *readStream(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const handle = await this.open(path, { read: true }, signal);
    try {
      yield* this.readHandle(handle, signal);
    } finally {
      this.release(handle);
    }
  }

  /** The content behind a handle, which stays open; whole, unless a part is asked for. */
  async *readHandle(
    handle: number,
    signal?: AbortSignal,
    { start = 0, end = Infinity, windowBytes = READ_WINDOW_BYTES }: ContentPart = {},
  ): AsyncGenerator<Uint8Array, void> {
    let offset = start;
    let askedBytes = 0;
    const readAhead = () => {
      askedBytes = Math.min(windowBytes, end - offset);
      const window = this.read(handle, offset, askedBytes, signal);
      // The read ahead may fail before the reader awaits it, or after it has stopped: that must not be an unhandled rejection.
      window.catch(() => undefined);
      return window;
    };
    let ahead = readAhead();
    for (;;) {
      const chunks = await ahead;
      const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
      offset += length;
      const isLast = length < askedBytes || offset >= end;
      if (!isLast) ahead = readAhead();
      yield* chunks;
      if (isLast) return;
    }
  }

  /** Creates or overwrites the file in place; a reader may see it half written. */
  async writeFile(
    path: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options: { mode?: number } = {},
    signal?: AbortSignal,
  ): Promise<void> {
    const flags = { write: true, create: true, truncate: true };
    const handle = await this.open(
      path,
      options.mode === undefined ? flags : { ...flags, mode: options.mode },
      signal,
    );
    try {
      await this.write(handle, 0, content instanceof Uint8Array ? once(content) : content, signal);
    } catch (error) {
      this.release(handle);
      throw error;
    }
    await this.closeHandle(handle, signal);
  }

  /**
   * Creates or replaces a file atomically: readers see the old one until the new one is complete, and nothing is left when the
   * content, the caller or the connection fails. Mode and owner of a replaced file stay unless given; a link is replaced itself.
   */
  async replaceFile(
    path: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options: ReplacementOptions = {},
    signal?: AbortSignal,
  ): Promise<void> {
    const { mode, uid, gid, metadata } = { ...(await this.#keptOf(path, signal)), ...options };
    const partial = partialPathOf(path);
    const flags = { write: true, createNew: true, temporary: true };
    const handle = await this.open(partial, mode === undefined ? flags : { ...flags, mode }, signal);
    try {
      await this.write(handle, 0, content instanceof Uint8Array ? once(content) : content, signal);
      if (uid !== undefined || gid !== undefined) await this.fsetstat(handle, { uid, gid, mode }, signal);
      if (metadata !== undefined) await this.#setMetadata({ handle }, metadata, signal);
      await this.rename(partial, path, signal);
    } catch (error) {
      this.release(handle);
      throw error;
    }
    await this.closeHandle(handle, signal);
  }

  /** Of a link: that of its target. */
  async metadata(path: string, signal?: AbortSignal): Promise<FileMetadata> {
    const flat = readArray(own(await this.#ask('GetMetadata', { path }, signal), 'Metadata'), 'metadata');
    const pairs: [string, string][] = [];
    for (let i = 0; i + 1 < flat.length; i += 2) pairs.push([String(flat[i]), String(flat[i + 1])]);
    return Object.fromEntries(pairs);
  }

  /** Replaces all of it. */
  async setMetadata(path: string, metadata: FileMetadata, signal?: AbortSignal): Promise<void> {
    await this.#setMetadata({ path }, metadata, signal);
  }

  async #setMetadata(
    file: { readonly path: string } | { readonly handle: number },
    metadata: FileMetadata,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    await this.#ask('SetMetadata', { ...file, pairs: Object.entries(metadata).flat() }, signal);
  }

  /** What a file hands on to the one that replaces it; nothing when there is none. */
  async #keptOf(path: string, signal: AbortSignal | undefined): Promise<ReplacementOptions> {
    try {
      const { mode, uid, gid } = await this.stat(path, {}, signal);
      // A new file is root's already.
      const isOwned = uid !== 0 || gid !== 0;
      return { mode: mode & PERMISSIONS, ...(isOwned ? { uid, gid } : {}) };
    } catch (error) {
      if (isMissing(error)) return {};
      throw error;
    }
  }

  /**
   * Resolves when the watch is active. Only svc-init supports watches and announces that in `core.ready`.
   * @throws ChannelError `unsupported` from an agent that cannot
   */
  async watch(
    path: string,
    options: { recursive?: boolean } = {},
    signal?: AbortSignal,
  ): Promise<ChannelWatch> {
    if (!this.#agent.features.includes('svc.watch')) {
      const message = "The sandbox's agent is too old to watch files; start the sandbox again";
      throw new ChannelError('unsupported', message);
    }
    return await ChannelWatch.start(this.#connection, path, options.recursive ?? false, signal);
  }

  /** Closes a handle without waiting for the answer; the end of the connection frees it too. */
  release(handle: number): void {
    this.closeHandle(handle).catch(() => undefined);
  }

  /** When the caller aborts while the handle is on its way, the handle is closed on arrival. */
  async #openHandle(operation: string, fields: Payload, signal: AbortSignal | undefined): Promise<number> {
    signal?.throwIfAborted();
    const opening = this.#ask(operation, fields, undefined).then((answer) => readUint(answer, 'Handle'));
    try {
      return await abortable(opening, signal);
    } catch (error) {
      opening.then(
        (handle) => this.release(handle),
        () => undefined,
      );
      throw error;
    }
  }

  async #ask(operation: string, fields: Payload, signal: AbortSignal | undefined): Promise<Payload> {
    this.#requireSupport();
    const data = await requestFile(this.#connection, { operation, fields }, signal);
    return data === null ? {} : readRecord(data, 'data');
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof FileFailed && error.errnoName !== null && MISSING.has(error.errnoName);
}

function readList(answer: Payload): readonly FileEntry[] {
  return readArray(own(answer, 'List'), 'list of files').map(readEntry);
}

function join(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const only = chunks[0];
  if (chunks.length === 1 && only !== undefined) return only;
  const joined = new Uint8Array(length);
  let position = 0;
  for (const chunk of chunks) {
    joined.set(chunk, position);
    position += chunk.length;
  }
  return joined;
}

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  yield data;
}
