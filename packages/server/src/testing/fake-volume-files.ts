import { PlatformError } from '@svc/contract';
import type { VolumeEntry } from '@svc/contract/orchestrator';

const CHUNK_BYTES = 64 * 1024;

interface Entry {
  /** Null: a folder. */
  readonly content: Buffer | null;
  readonly changedAt: string;
}

/** The files of one fake volume, by path. Paths were validated before. */
export class FakeVolumeFiles {
  #entries = new Map<string, Entry>();
  capacityBytes: number;

  constructor(capacityBytes: number) {
    this.capacityBytes = capacityBytes;
  }

  get usedBytes(): number {
    return this.#entries.values().reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
  }

  read(path: string): AsyncIterable<Uint8Array> {
    const { content } = this.#find(path);
    if (content === null) throw invalid(`${path} is a folder; name a file`);
    return chunksOf(content);
  }

  async write(path: string, source: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    this.makeFolder(parentOf(path));
    const requireFile = () => {
      if (this.#entries.get(path)?.content === null) throw invalid(`${path} is a folder; name a file`);
    };
    requireFile();
    const chunks: Uint8Array[] = [];
    for await (const chunk of source) {
      signal?.throwIfAborted();
      chunks.push(chunk);
    }
    signal?.throwIfAborted();
    const content = Buffer.concat(chunks);
    if (this.usedBytes + content.length > this.capacityBytes) throw full();
    requireFile();
    this.#entries.set(path, { content, changedAt: now() });
  }

  list(path: string): readonly VolumeEntry[] {
    if (path !== '' && this.#find(path).content !== null) throw invalid(`A part of ${path} is not a folder`);
    const children = [...this.#entries.keys()].filter((name) => parentOf(name) === path);
    return children.toSorted().map((name) => this.stat(name));
  }

  stat(path: string): VolumeEntry {
    const entry = path === '' ? { content: null, changedAt: now() } : this.#find(path);
    return {
      path,
      kind: entry.content === null ? 'directory' : 'file',
      size: entry.content?.length ?? 4096,
      mode: entry.content === null ? 0o755 : 0o644,
      uid: 0,
      gid: 0,
      modifiedAt: entry.changedAt,
      accessedAt: entry.changedAt,
    };
  }

  makeFolder(path: string): void {
    const parts = path === '' ? [] : path.split('/');
    const folders = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
    for (const folder of folders) {
      const content = this.#entries.get(folder)?.content;
      if (content !== undefined && content !== null) throw invalid(`${folder} exists and is not a folder`);
      if (content === undefined) this.#entries.set(folder, { content: null, changedAt: now() });
    }
  }

  copy(from: string, to: string): void {
    this.#find(from);
    if (to.startsWith(`${from}/`)) throw invalid('A folder cannot be copied into itself');
    const copied = this.#tree(from);
    const size = copied.reduce((sum, [, { content }]) => sum + (content?.length ?? 0), 0);
    if (this.usedBytes + size > this.capacityBytes) throw full();
    this.#put(from, to, copied);
  }

  rename(from: string, to: string): void {
    this.#find(from);
    if (to.startsWith(`${from}/`)) throw invalid('A folder cannot be moved into itself');
    const moved = this.#tree(from);
    for (const [path] of moved) this.#entries.delete(path);
    this.#put(from, to, moved);
  }

  remove(path: string, recursive: boolean): void {
    this.#find(path);
    const tree = this.#tree(path);
    if (tree.length > 1 && !recursive) {
      throw new PlatformError('invalid_request', `The folder "${path}" is not empty`);
    }
    for (const [name] of tree) this.#entries.delete(name);
  }

  #put(from: string, to: string, tree: readonly (readonly [string, Entry])[]): void {
    const parent = parentOf(to);
    if (parent !== '' && this.#find(parent).content !== null)
      throw invalid(`A part of ${to} is not a folder`);
    for (const [path, entry] of tree) this.#entries.set(`${to}${path.slice(from.length)}`, entry);
  }

  #tree(path: string): readonly (readonly [string, Entry])[] {
    return [...this.#entries].filter(([name]) => name === path || name.startsWith(`${path}/`));
  }

  #find(path: string): Entry {
    const entry = this.#entries.get(path);
    if (entry !== undefined) return entry;
    if (this.#entries.get(parentOf(path))?.content instanceof Buffer) {
      throw invalid(`A part of ${path} is not a folder`);
    }
    throw new PlatformError('volume_file_not_found', `There is no "${path}" in the volume`, {
      details: { path },
    });
  }
}

async function* chunksOf(content: Buffer): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < content.length; start += CHUNK_BYTES) {
    yield await Promise.resolve(content.subarray(start, start + CHUNK_BYTES));
  }
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function invalid(message: string): PlatformError {
  return new PlatformError('invalid_volume_path', message);
}

function full(): PlatformError {
  return new PlatformError('disk_full', 'The volume is full; remove files or raise its capacity');
}

function now(): string {
  return new Date().toISOString();
}
