import { createHash } from 'node:crypto';
import { PlatformError } from '@svc/contract';
import { abortable } from '@svc/contract/async';
import type { FetchProgress, HeldImageView, HeldImagesView } from '@svc/contract/orchestrator';

const SIZE_BYTES = 2;

/** Which scope holds which image. A name without a registry is an image that the operator provides. */
export class FakeImages {
  readonly #holds = new Map<string, Map<string, string>>();
  readonly #provided = new Set<string>();
  readonly #fetched = Promise.withResolvers<void>();
  /** How many callers wait for the slow image. */
  fetching = 0;

  finishFetching(): void {
    this.#fetched.resolve();
  }

  /** Image `missing` cannot be found, and image `slow` is not there before `finishFetching`. */
  async fetch(
    reference: string,
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal,
  ): Promise<void> {
    onProgress({ message: 'downloading image', doneBytes: 1, totalBytes: 2 });
    if (reference === 'missing')
      throw new PlatformError('image_not_found', 'image missing is not known; import it first');
    if (reference !== 'slow') return;
    this.fetching += 1;
    try {
      await abortable(this.#fetched.promise, signal);
    } finally {
      this.fetching -= 1;
    }
  }

  hold(reference: string, scope: string | undefined, maxHeldBytes: number | null = null): void {
    if (!reference.includes('/') || scope === undefined) {
      this.#provided.add(reference);
      return;
    }
    const held = this.#holds.get(scope) ?? new Map<string, string>();
    const bytes = (held.size + (held.has(reference) ? 0 : 1)) * SIZE_BYTES;
    if (maxHeldBytes !== null && bytes > maxHeldBytes) {
      throw new PlatformError('quota_exceeded', 'The images take all the storage that they may have', {
        details: { limit: 'max_image_storage_gib', value: bytes, maximum: maxHeldBytes },
      });
    }
    this.#holds.set(scope, held.set(reference, new Date().toISOString()));
  }

  list(scope: string, isInUse: (reference: string) => boolean): HeldImagesView {
    const own = [...(this.#holds.get(scope) ?? [])].map(([name, usedAt]) =>
      view(name, usedAt, isInUse(name)),
    );
    const provided = [...this.#provided].map((name) => view(name, null, isInUse(name)));
    return { images: [...own, ...provided], storedBytes: own.length * SIZE_BYTES };
  }

  release(scope: string, reference: string, isInUse: (reference: string) => boolean): void {
    if (this.#holds.get(scope)?.has(reference) !== true)
      throw new PlatformError('image_not_found', `Image ${reference} is not one of your own`);
    if (isInUse(reference))
      throw new PlatformError('image_in_use', `Image ${reference} is used by a sandbox`);
    this.#holds.get(scope)?.delete(reference);
  }
}

function view(reference: string, usedAt: string | null, isInUse: boolean): HeldImageView {
  return {
    id: `sha256:${createHash('sha256').update(reference).digest('hex')}`,
    digest: null,
    references: [reference],
    config: { entrypoint: [], cmd: [], env: [], workdir: null, user: null, labels: {}, stopSignal: null },
    architecture: 'amd64',
    sizeBytes: SIZE_BYTES,
    createdAt: '2026-01-01T00:00:00.000Z',
    scopes: null,
    layers: 1,
    usedAt,
    isInUse,
  };
}
