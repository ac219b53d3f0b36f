import type { ChannelFiles, FileEntry } from '@svc/contract/channel';
import { ContentSource, type Content } from '../client/byte-content.ts';
import { callOptionsOf, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import { SvcError } from '../svc-error.ts';
import { utf8Decoder } from '../client/utf8.ts';
import { makeFileLink, type FileLink, type LinkOptions } from './file-link.ts';
import { FileWatch, type WatchOptions } from './file-watch.ts';
import type { SharedChannel } from './shared-channel.ts';

/** Metadata of a file in a sandbox. */
export interface FileInfo {
  readonly path: string;
  /** The last part of the path. */
  readonly name: string;
  readonly kind: 'file' | 'directory' | 'symlink' | 'other';
  readonly sizeBytes: number;
  /** Permission bits. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** To the second. */
  readonly modifiedAt: Date | null;
}

export interface WriteOptions extends CallOptions {
  readonly mode?: number;
  readonly atomic?: boolean;
}

const PERMISSIONS = 0o7777;

/**
 * Files of a sandbox. Paths are absolute. Failures are `not_found`, `name_already_exists`, `forbidden`, `disk_full` or
 * `invalid_request`, with the errno and the path in `details`. Content of any size goes through the streams.
 */
export class Files {
  readonly #client: Client;
  readonly #sandboxId: string;
  readonly #channel: SharedChannel;

  constructor(client: Client, sandboxId: string, channel: SharedChannel) {
    this.#client = client;
    this.#sandboxId = sandboxId;
    this.#channel = channel;
  }

  /** Whole, up to 64 MiB unless told otherwise. @throws SvcError `payload_too_large` */
  async read(path: string, options: CallOptions & { readonly maxBytes?: number } = {}): Promise<Uint8Array> {
    const call = callOptionsOf(options, { maxBytes: true });
    const limit = options.maxBytes === undefined ? {} : { maxBytes: options.maxBytes };
    return await this.#call(path, call, (files, signal) => files.readFile(path, limit, signal));
  }

  /** As UTF-8. */
  async readText(path: string, options: CallOptions & { readonly maxBytes?: number } = {}): Promise<string> {
    return utf8Decoder().decode(await this.read(path, options));
  }

  /** A stream with back-pressure. */
  async *readStream(path: string, options: CallOptions = {}): AsyncGenerator<Uint8Array, void> {
    try {
      yield* this.#channel.stream(options, ({ files }, signal) => files.readStream(path, signal));
    } catch (error) {
      throw about(path, error);
    }
  }

  /**
   * Creates or replaces a file; `mode` is for a new one. Readers may see it half written, unless it is `atomic`: then they see the
   * old one until the new one is complete, and nothing is left of a failed write. That needs space for both for a moment, the owner
   * of a replaced file stays, and a link is replaced itself. Errors of the content are thrown unchanged.
   */
  async write(path: string, content: Content, options: WriteOptions = {}): Promise<void> {
    const call = callOptionsOf(options, { mode: true, atomic: true });
    const mode = options.mode === undefined ? {} : { mode: options.mode };
    const source = new ContentSource(content);
    try {
      await this.#call(path, call, (files, signal) =>
        options.atomic === true
          ? files.replaceFile(path, source.bytes, mode, signal)
          : files.writeFile(path, source.bytes, mode, signal),
      );
    } catch (error) {
      throw source.failure ?? error;
    }
  }

  /** For `pipeTo`: closing it resolves when the file is complete. */
  writeStream(path: string, options: WriteOptions = {}): WritableStream<Uint8Array> {
    const pipe = new TransformStream<Uint8Array, Uint8Array>();
    const writer = pipe.writable.getWriter();
    const written = this.write(path, pipe.readable, options);
    // A write that fails before it reads its content leaves the pipe full: cancelling it ends a pending `write` of the caller.
    written.catch((error: unknown) => pipe.readable.cancel(error).catch(() => undefined));
    return new WritableStream<Uint8Array>({
      // The pipe refuses chunks after the file has failed; the error of the file is the cause.
      write: (chunk) => writer.write(chunk).catch(() => written),
      close: async () => {
        await writer.close().catch(() => undefined);
        await written;
      },
      abort: (reason) => writer.abort(reason),
    });
  }

  /** The children of a directory, by name. */
  async list(path: string, options: CallOptions = {}): Promise<readonly FileInfo[]> {
    const entries = await this.#call(path, options, (files, signal) =>
      Array.fromAsync(files.readDirectory(path, signal)),
    );
    return entries.map(toInfo).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Follows links, unless told otherwise. */
  async stat(
    path: string,
    options: CallOptions & { readonly followSymlink?: boolean } = {},
  ): Promise<FileInfo> {
    const call = callOptionsOf(options, { followSymlink: true });
    const { followSymlink = true } = options;
    return toInfo(
      await this.#call(path, call, (files, signal) => files.stat(path, { followSymlink }, signal)),
    );
  }

  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    return await this.#call(path, options, (files, signal) => files.exists(path, signal));
  }

  /** Creates its parents too; an existing directory is no error. */
  async mkdir(path: string, options: CallOptions & { readonly mode?: number } = {}): Promise<void> {
    const call = callOptionsOf(options, { mode: true });
    const mode = options.mode === undefined ? {} : { mode: options.mode };
    await this.#call(path, call, (files, signal) => files.mkdir(path, mode, signal));
  }

  /** Replaces what is there. */
  async rename(from: string, to: string, options: CallOptions = {}): Promise<void> {
    await this.#call(from, options, (files, signal) => files.rename(from, to, signal));
  }

  /** A single file. */
  async copy(from: string, to: string, options: CallOptions = {}): Promise<void> {
    await this.#call(from, options, (files, signal) => files.copy(from, to, signal));
  }

  /** Directories that are not empty only with `recursive`. */
  async remove(path: string, options: CallOptions & { readonly recursive?: boolean } = {}): Promise<void> {
    const call = callOptionsOf(options, { recursive: true });
    const { recursive = false } = options;
    await this.#call(path, call, async (files, signal) => {
      const { kind } = await files.stat(path, { followSymlink: false }, signal);
      if (kind === 'dir') await files.removeDir(path, { recursive }, signal);
      else await files.remove(path, signal);
    });
  }

  /** The target of a link. */
  async readLink(path: string, options: CallOptions = {}): Promise<string> {
    return await this.#call(path, options, (files, signal) => files.readLink(path, signal));
  }

  async symlink(target: string, path: string, options: CallOptions = {}): Promise<void> {
    await this.#call(path, options, (files, signal) => files.symlink(target, path, signal));
  }

  /** Permission bits; follows links. */
  async chmod(path: string, mode: number, options: CallOptions = {}): Promise<void> {
    await this.#call(path, options, (files, signal) => files.setStat(path, { mode }, {}, signal));
  }

  /**
   * A link to read or write this file without a key: for `curl`, and for pages of any origin. It ends at its time, when the
   * credential of this client is revoked, and with the sandbox.
   */
  async link(path: string, options: LinkOptions = {}): Promise<FileLink> {
    return await makeFileLink(this.#client, this.#sandboxId, path, options);
  }

  /**
   * Resolves when the watch is active. The signal ends the watch also later; `timeoutMs` is for the start only. At most 128
   * watches in a sandbox, and 16384 directories in each.
   * @throws SvcError `invalid_request` from a sandbox that was started before watching was known
   */
  async watch(path: string, options: WatchOptions = {}): Promise<FileWatch> {
    return await FileWatch.start(this.#channel, path, options);
  }

  async #call<T>(
    path: string,
    options: CallOptions,
    work: (files: ChannelFiles, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#channel.use(options, ({ files }, signal) => work(files, signal));
    } catch (error) {
      throw about(path, error);
    }
  }
}

/** Adds the path, which the answer of the sandbox lacks. */
function about(path: string, error: unknown): unknown {
  if (!SvcError.is(error) || error.details?.['errno'] === undefined) return error;
  const details = { ...error.details, path };
  return new SvcError(error.code, `${path}: ${error.message}`, { details, cause: error.cause });
}

const KINDS = { file: 'file', dir: 'directory', symlink: 'symlink', other: 'other' } as const;

function toInfo(entry: FileEntry): FileInfo {
  const { path, kind, size, mode, uid, gid, modifiedSeconds } = entry;
  return {
    path,
    name: path.slice(path.lastIndexOf('/') + 1),
    kind: KINDS[kind],
    sizeBytes: size,
    mode: mode & PERMISSIONS,
    uid,
    gid,
    modifiedAt: modifiedSeconds === null ? null : new Date(modifiedSeconds * 1000),
  };
}
