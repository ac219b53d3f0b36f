import type { HeldImagesView, ImageView, PullImage } from '@svc/contract/orchestrator';
import type { BuildDemoImages, ImportImage } from './engine-api.ts';
import { ignoreProgress, segment, type EngineCalls, type OnProgress } from './engine-request.ts';

/** The engine's image calls. */
export class EngineImages {
  readonly #calls: Pick<EngineCalls, 'json' | 'withProgress'>;

  constructor(calls: Pick<EngineCalls, 'json' | 'withProgress'>) {
    this.#calls = calls;
  }

  pullImage(
    request: PullImage,
    onProgress: OnProgress = ignoreProgress,
    signal?: AbortSignal,
  ): Promise<ImageView> {
    return this.#calls.withProgress('/images/pull', request, onProgress, signal);
  }

  importImage(
    request: ImportImage,
    onProgress: OnProgress = ignoreProgress,
    signal?: AbortSignal,
  ): Promise<ImageView> {
    return this.#calls.withProgress('/images/import', request, onProgress, signal);
  }

  buildDemoImages(
    request: BuildDemoImages,
    onProgress: OnProgress = ignoreProgress,
    signal?: AbortSignal,
  ): Promise<readonly ImageView[]> {
    return this.#calls.withProgress('/images/build-demo', request, onProgress, signal);
  }

  listImages(signal?: AbortSignal): Promise<readonly ImageView[]> {
    return this.#calls.json('GET', '/images', undefined, signal);
  }

  getImage(reference: string, signal?: AbortSignal): Promise<ImageView> {
    return this.#calls.json('GET', `/images/${segment(reference)}`, undefined, signal);
  }

  async removeImage(reference: string, signal?: AbortSignal): Promise<void> {
    await this.#calls.json('DELETE', `/images/${segment(reference)}`, undefined, signal);
  }

  listHeldImages(scope: string, signal?: AbortSignal): Promise<HeldImagesView> {
    return this.#calls.json('GET', `/scopes/${segment(scope)}/images`, undefined, signal);
  }

  /** Removes the image from one scope; other scopes that hold it keep it. */
  async releaseImage(scope: string, reference: string, signal?: AbortSignal): Promise<void> {
    const path = `/scopes/${segment(scope)}/images/${segment(reference)}`;
    await this.#calls.json('DELETE', path, undefined, signal);
  }

  pruneImages(
    signal?: AbortSignal,
  ): Promise<{ readonly images: readonly string[]; readonly freedBytes: number }> {
    return this.#calls.json('POST', '/images/prune', {}, signal);
  }
}
