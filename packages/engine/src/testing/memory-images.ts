import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { PlatformError } from '@svc/contract/errors';
import { digestOf, isDigest } from '../images/digest.ts';
import { hostArchitecture } from '../images/host-architecture.ts';
import { overHoldLimit, OPERATOR } from '../images/image-holds.ts';
import {
  isOpenTo,
  PUBLIC,
  scopesAfter,
  unionOf,
  type AccessProof,
  type Scopes,
} from '../images/image-access.ts';
import { inUse, notYours } from '../images/image-failures.ts';
import type {
  HeldImages,
  Image,
  Images,
  ImportSource,
  IsImageInUse,
  ResolveOptions,
} from '../images/images.ts';
import { parseReference } from '@svc/contract/image-reference';
import type { RegistryAuth } from '@svc/contract/orchestrator';
import { formatReference } from '../images/reference.ts';
import { SharedTasks } from '../images/shared-task.ts';

const CONTENT_BYTES = 1000;

/** The fake of this port: images without files, from a registry that is a map. Keeps every promise of `Images` that needs no disk. */
export class MemoryImages implements Images {
  readonly #isInUse: IsImageInUse;
  /** Reference to content; the same content is the same image. */
  readonly #registry = new Map<string, string>();
  readonly #names = new Map<string, { readonly id: string; readonly scopes: Scopes }>();
  readonly #images = new Map<string, Image>();
  /** When a scope last used an image, by scope and id. */
  readonly #holds = new Map<string, Map<string, number>>();
  readonly #pulls = new SharedTasks<string>();
  /** Pulls end when this has resolved. */
  gate: Promise<void> = Promise.resolve();
  isReachable = true;
  /** The credentials that the registry requires. */
  auth: RegistryAuth | null = null;
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
    const local = this.#find(name, (scopes) => isOpenTo(scopes, options.scope));
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
    this.#hold(id, options);
    options.onProgress({ step: 'done', id });
    return this.#view(id);
  }

  async import(
    source: ImportSource,
    reference: string,
    options: Omit<ResolveOptions, 'pullPolicy' | 'auth' | 'scope'>,
  ): Promise<Image> {
    const name = normalized(reference);
    options.signal.throwIfAborted();
    await setImmediate();
    const id = this.#add(name, `${source.type} ${source.path}`, null, PUBLIC);
    this.#hold(id, { scope: null });
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
    const id = isDigest(name) ? this.#find(name) : this.#names.get(name)?.id;
    if (id === undefined) throw new PlatformError('image_not_found', `Image ${name} is not on this host`);
    const others = this.#view(id).references.filter((each) => each !== name);
    const goesWhole = isDigest(name) || others.length === 0;
    if (goesWhole && this.#isInUse(id)) throw inUse(name, id);
    for (const each of goesWhole ? this.#view(id).references : [name]) this.#names.delete(each);
    if (!goesWhole) return;
    this.#images.delete(id);
    for (const held of this.#holds.values()) held.delete(id);
  }

  async held(scope: string): Promise<HeldImages> {
    const own = this.#heldBy(scope);
    const images = [...this.#images.keys()].flatMap((id) => {
      const usedAt = own.get(id);
      const image = this.#view(id);
      if (usedAt === undefined && (image.scopes !== null || !this.#heldBy(OPERATOR).has(id))) return [];
      const when = usedAt === undefined ? null : new Date(usedAt).toISOString();
      return [{ image, usedAt: when, isInUse: this.#isInUse(id, scope) }];
    });
    return { images, storedBytes: this.#countOf(scope) * CONTENT_BYTES };
  }

  async release(referenceOrId: string, scope: string): Promise<void> {
    const name = isDigest(referenceOrId) ? referenceOrId : normalized(referenceOrId);
    const id = this.#find(name, (scopes) => isOpenTo(scopes, scope));
    if (id === undefined) throw new PlatformError('image_not_found', `Image ${name} is not on this host`);
    if (!this.#heldBy(scope).has(id)) throw notYours(name);
    if (this.#isInUse(id, scope)) throw inUse(name, id);
    this.#heldBy(scope).delete(id);
    for (const [each, { id: target, scopes }] of this.#names) {
      if (target !== id || scopes === null) continue;
      this.#names.set(each, { id, scopes: scopes.filter((known) => known !== scope) });
    }
    const isHeld = this.#holds.values().some((held) => held.has(id));
    if (!isHeld && !this.#isInUse(id)) await this.remove(id);
  }

  async collect(unusedMs: number): Promise<readonly string[]> {
    const oldest = Date.now() - unusedMs;
    const doomed = [...this.#images.keys()].filter((id) => {
      const isKept = this.#isNamed(id) && this.#heldBy(OPERATOR).has(id);
      const isFresh = this.#holds.values().some((held) => (held.get(id) ?? -Infinity) > oldest);
      return !this.#isInUse(id) && !isKept && !isFresh;
    });
    for (const id of doomed) await this.remove(id);
    return doomed;
  }

  async prune(): Promise<{ readonly images: readonly string[]; readonly freedBytes: number }> {
    const images = [...this.#images.keys()].filter((id) => !this.#isInUse(id));
    for (const id of images) await this.remove(id);
    return { images, freedBytes: images.length * CONTENT_BYTES };
  }

  #heldBy(scope: string): Map<string, number> {
    const held = this.#holds.get(scope) ?? new Map<string, number>();
    this.#holds.set(scope, held);
    return held;
  }

  #countOf(scope: string): number {
    return this.#heldBy(scope)
      .keys()
      .filter((id) => scope === OPERATOR || !this.#heldBy(OPERATOR).has(id))
      .toArray().length;
  }

  #hold(id: string, { scope, maxHeldBytes = null }: Pick<ResolveOptions, 'scope' | 'maxHeldBytes'>): void {
    const own = this.#heldBy(scope ?? OPERATOR);
    const isNew = !own.has(id);
    if (isNew && this.#heldBy(OPERATOR).has(id)) return;
    const takenBytes = (this.#countOf(scope ?? OPERATOR) + (isNew ? 1 : 0)) * CONTENT_BYTES;
    if (isNew && maxHeldBytes !== null && takenBytes > maxHeldBytes)
      throw overHoldLimit({ takenBytes, maximumBytes: maxHeldBytes });
    own.set(id, Date.now());
  }

  #pull(name: string, options: ResolveOptions): Promise<string> {
    const { auth, scope } = options;
    return this.#pulls.run(
      JSON.stringify([name, scope, auth]),
      async (onProgress, signal) => {
        this.pullCount += 1;
        if (!this.isReachable)
          throw new PlatformError('image_pull_failed', `The registry of ${name} cannot be reached`);
        const isLetIn =
          this.auth === null ||
          (auth?.username === this.auth.username && auth.password === this.auth.password);
        if (!isLetIn)
          throw new PlatformError('image_pull_failed', `The registry of ${name} wants credentials`);
        const { content, digest } = this.#published(name);
        onProgress({ step: 'downloading', doneBytes: 0, totalBytes: CONTENT_BYTES });
        await Promise.race([this.gate, aborted(signal)]);
        signal.throwIfAborted();
        onProgress({ step: 'downloading', doneBytes: CONTENT_BYTES, totalBytes: CONTENT_BYTES });
        this.#hold(digestOf(content), options);
        return this.#add(name, content, digest, { isAnonymous: auth === null, scope });
      },
      options,
    );
  }

  #published(name: string): { content: string; digest: string } {
    const content = this.#registry.get(name);
    if (content !== undefined) return { content, digest: digestOf(`manifest ${content}`) };
    throw new PlatformError('image_not_found', `${name} does not exist in its registry`);
  }

  #add(name: string, content: string, digest: string | null, proof: AccessProof): string {
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
      scopes: null,
    };
    if (!this.#images.has(id)) this.#images.set(id, image);
    const before = this.#names.get(name);
    this.#names.set(name, { id, scopes: scopesAfter(before?.id === id ? before.scopes : undefined, proof) });
    if (before !== undefined && !this.#isNamed(before.id)) this.#keepNameless(before);
    return id;
  }

  #keepNameless({ id, scopes }: { readonly id: string; readonly scopes: Scopes }): void {
    const image = this.#images.get(id);
    if (image !== undefined) this.#images.set(id, { ...image, scopes });
  }

  #find(name: string, isOpen: (scopes: Scopes) => boolean = () => true): string | undefined {
    const { digest } = isDigest(name) ? { digest: null } : parseReference(name);
    if (!isDigest(name) && digest === null) {
      const named = this.#names.get(name);
      return named !== undefined && isOpen(named.scopes) ? named.id : undefined;
    }
    const ids = [...this.#images.keys()].filter((id) => isOpen(this.#view(id).scopes));
    return ids.find((id) => id === name || (digest !== null && this.#images.get(id)?.digest === digest));
  }

  #isNamed(id: string): boolean {
    return this.#names.values().some((each) => each.id === id);
  }

  #view(id: string): Image {
    const image = this.#images.get(id);
    if (image === undefined) throw new Error(`no image ${id}`);
    const names = [...this.#names].filter(([, target]) => target.id === id);
    const scopes = names.length === 0 ? image.scopes : unionOf(names.map(([, target]) => target.scopes));
    return { ...image, scopes, references: names.map(([name]) => name).sort() };
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
