import type { VolumeFileInfo } from '@svc/contract/rest';
import { encodeVolumePath } from '@svc/contract/volume-path';
import { joinChunks, type Content } from '../client/byte-content.ts';
import { callOptionsOf, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import { utf8Decoder } from '../client/utf8.ts';

/** Files of a volume. Paths are relative to it; the empty path is the volume itself. */
export class VolumeFiles {
  readonly #client: Client;
  readonly #volumeId: string;

  constructor(client: Client, volumeId: string) {
    this.#client = client;
    this.#volumeId = volumeId;
  }

  /** The direct children of a folder. */
  async list(path = '', options: CallOptions = {}): Promise<readonly VolumeFileInfo[]> {
    return (await this.#client.call('volumeFiles.list', this.#at(path), options)).entries;
  }

  async stat(path: string, options: CallOptions = {}): Promise<VolumeFileInfo> {
    return (await this.#client.call('volumeFiles.stat', this.#at(path), options)).metadata;
  }

  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    return (await this.#client.call('volumeFiles.exists', this.#at(path), options)).exists;
  }

  /** Whole, into memory. */
  async read(path: string, options: CallOptions = {}): Promise<Uint8Array> {
    return await joinChunks(this.readStream(path, options));
  }

  /** As UTF-8. */
  async readText(path: string, options: CallOptions = {}): Promise<string> {
    return utf8Decoder().decode(await this.read(path, options));
  }

  /** A stream with back-pressure. The time limit applies until the first byte. */
  async *readStream(path: string, options: CallOptions = {}): AsyncGenerator<Uint8Array, void> {
    yield* await this.#client.call('volumeFiles.read', this.#at(path), options);
  }

  /**
   * Readers see the old file until the new one is complete. Streamed content is sent once: when the connection breaks, the
   * caller has to begin again.
   */
  async write(path: string, content: Content, options: CallOptions = {}): Promise<void> {
    await this.#client.call('volumeFiles.write', { ...this.#at(path), body: content }, options);
  }

  /** With the folders that lead to it. */
  async mkdir(path: string, options: CallOptions = {}): Promise<void> {
    await this.#client.call('volumeFiles.mkdir', { ...this.#volume, body: { path } }, options);
  }

  /** Files and folders. */
  async copy(from: string, to: string, options: CallOptions = {}): Promise<void> {
    await this.#client.call('volumeFiles.copy', { ...this.#volume, body: { from, to } }, options);
  }

  async rename(from: string, to: string, options: CallOptions = {}): Promise<void> {
    await this.#client.call('volumeFiles.rename', { ...this.#volume, body: { from, to } }, options);
  }

  /** Folders that are not empty only with `recursive`. */
  async remove(path: string, options: CallOptions & { readonly recursive?: boolean } = {}): Promise<void> {
    const call = callOptionsOf(options, { recursive: true });
    const { params, headers } = this.#at(path);
    const recursive = options.recursive === true ? 'true' : 'false';
    const input = { params, headers: { ...headers, 'x-svc-file-recursive': recursive } } as const;
    await this.#client.call('volumeFiles.remove', input, call);
  }

  get #volume(): { readonly params: { readonly id: string } } {
    return { params: { id: this.#volumeId } };
  }

  #at(path: string): {
    readonly params: { readonly id: string };
    readonly headers: { readonly 'x-svc-file-path': string };
  } {
    return { ...this.#volume, headers: { 'x-svc-file-path': encodeVolumePath(path) } };
  }
}
