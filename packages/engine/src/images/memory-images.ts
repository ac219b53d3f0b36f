import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { PlatformError } from '@svc/contract';
import { digestOf, isDigest } from './digest.ts';
import { hostArchitecture } from './host-architecture.ts';
import type { Image, Images, ImportSource, IsImageInUse, ResolveOptions } from './images.ts';
import { formatReference, parseReference } from './reference.ts';
import { SharedTasks } from './shared-task.ts';

const CONTENT_BYTES = 1000;

/** The fake of this port: images without files, from a registry that is a map. Keeps every promise of `Images` that needs no disk. */
export class MemoryImages implements Images {
  readonly #isInUse: IsImageInUse;
  /** Reference to content; the same content is the same image. */
  readonly #registry = new Map<string, string>();
  readonly #names = new Map<string, string>();
  readonly #images = new Map<string, Image>();
  readonly #pulls = new SharedTasks<string>();
  /** Pulls end when this has come true. */
  gate: Promise<void> = Promise.resolve();
  isReachable = true;
  pullCount = 0;

  constructor(isInUse: IsImageInUse = () => false) {
    this.#isInUse = isInUse;
  }

  /** Makes the content available under the reference and returns its digest. */
  publish(reference: string, content: string): string {
    const digest = digestOf(`manifest ${content}`);
    const parsed = parseReference(reference);
    this.#registry.set(formatReference(parsed), content);
    this.#registry.set(formatReference({ ...parsed, digest }), content);
    return digest;
  }

  async recover(): Promise<void> {}

  async resolve(reference: string, options: ResolveOptions): Promise<Image> {
    options.signal.throwIfAborted();
    const name = isDigest(reference) ? reference : normalized(reference);
    options.onProgress({ step: 'resolving', reference: name });
    const local = this.#find(name);
    const mayPull =
      !isDigest(name) && parseReference(name).registry !== null && options.pullPolicy !== 'never';
    const isEnough = local !== undefined && options.pullPolicy === 'if_missing';
    const id = mayPull && !isEnough ? await this.#pull(name, options) : local;
    if (id === undefined) {
      throw new PlatformError(
        'image_not_found',
        `Image ${name} is not on this host; run \`svc image pull ${name}\``,
      );
    }
    options.onProgress({ step: 'done', id });
    return this.#view(id);
  }

  async import(
    source: ImportSource,
    reference: string,
    options: Omit<ResolveOptions, 'pullPolicy' | 'auth'>,
  ): Promise<Image> {
    const name = normalized(reference);
    options.signal.throwIfAborted();
    await setImmediate();
    const id = this.#add(name, `${source.type} ${source.path}`, null);
    options.onProgress({ step: 'done', id });
    return this.#view(id);
  }

  async get(referenceOrId: string): Promise<Image | undefined> {
    const id = this.#find(isDigest(referenceOrId) ? referenceOrId : normalized(referenceOrId));
    return id === undefined ? undefined : this.#view(id);
  }

  async list(): Promise<readonly Image[]> {
    return [...this.#images.keys()].map((id) => this.#view(id));
  }

  async remove(referenceOrId: string): Promise<void> {
    const name = isDigest(referenceOrId) ? referenceOrId : normalized(referenceOrId);
    const id = isDigest(name) ? this.#find(name) : this.#names.get(name);
    if (id === undefined) throw new PlatformError('image_not_found', `Image ${name} is not on this host`);
    const others = this.#view(id).references.filter((each) => each !== name);
    const goesWhole = isDigest(name) || others.length === 0;
    if (goesWhole && this.#isInUse(id))
      throw new PlatformError('image_in_use', `Image ${name} is used by a sandbox`);
    for (const each of goesWhole ? this.#view(id).references : [name]) this.#names.delete(each);
    if (goesWhole) this.#images.delete(id);
  }

  async prune(): Promise<{ readonly images: readonly string[]; readonly freedBytes: number }> {
    const images = [...this.#images.keys()].filter((id) => !this.#isInUse(id));
    for (const id of images) await this.remove(id);
    return { images, freedBytes: images.length * CONTENT_BYTES };
  }

  #pull(name: string, options: ResolveOptions): Promise<string> {
    return this.#pulls.run(
      name,
      async (onProgress, signal) => {
        this.pullCount += 1;
        if (!this.isReachable)
          throw new PlatformError('image_pull_failed', `The registry of ${name} cannot be reached`);
        const { content, digest } = this.#published(name);
        onProgress({ step: 'downloading', doneBytes: 0, totalBytes: CONTENT_BYTES });
        await Promise.race([this.gate, aborted(signal)]);
        signal.throwIfAborted();
        onProgress({ step: 'downloading', doneBytes: CONTENT_BYTES, totalBytes: CONTENT_BYTES });
        return this.#add(name, content, digest);
      },
      options,
    );
  }

  #published(name: string): { content: string; digest: string } {
    const content = this.#registry.get(name);
    if (content !== undefined) return { content, digest: digestOf(`manifest ${content}`) };
    throw new PlatformError('image_not_found', `${name} does not exist in its registry`);
  }

  #add(name: string, content: string, digest: string | null): string {
    const id = digestOf(content);
    const image: Image = {
      id,
      digest,
      references: [],
      layers: [`/nonexistent/${randomBytes(8).toString('hex')}`],
      config: {
        entrypoint: [],
        cmd: ['/bin/sh'],
        env: [],
        workdir: null,
        user: null,
        labels: {},
        stopSignal: null,
      },
      architecture: hostArchitecture(),
      sizeBytes: CONTENT_BYTES,
      createdAt: new Date().toISOString(),
    };
    if (!this.#images.has(id)) this.#images.set(id, image);
    this.#names.set(name, id);
    return id;
  }

  #find(name: string): string | undefined {
    if (isDigest(name)) return this.#images.has(name) ? name : undefined;
    const { digest } = parseReference(name);
    if (digest === null) return this.#names.get(name);
    return [...this.#images.values()].find((image) => image.digest === digest)?.id;
  }

  #view(id: string): Image {
    const image = this.#images.get(id);
    if (image === undefined) throw new Error(`no image ${id}`);
    const references = [...this.#names].filter(([, target]) => target === id).map(([name]) => name);
    return { ...image, references: references.sort() };
  }
}

function normalized(reference: string): string {
  return formatReference(parseReference(reference));
}

async function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  await promise;
}
