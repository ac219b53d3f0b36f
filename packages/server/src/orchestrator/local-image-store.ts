import type { FetchedImage, FetchProgress, HeldImagesView, PullImage } from '@svc/contract/orchestrator';
import type { EngineClient } from '@svc/engine/client';
import { toProgress } from './fetch-progress.ts';
import type { ImageStore } from './image-store.ts';

/** The images of the engine of this host. */
export class LocalImageStore implements ImageStore {
  readonly #images: EngineClient['images'];

  constructor({ images }: EngineClient) {
    this.#images = images;
  }

  async pullImage(
    request: PullImage,
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal,
  ): Promise<FetchedImage> {
    const { digest, sizeBytes } = await this.#images.pullImage(
      request,
      (progress) => onProgress(toProgress(progress, false)),
      signal,
    );
    return { digest, sizeBytes };
  }

  async listHeldImages(scope: string, signal: AbortSignal): Promise<HeldImagesView> {
    return await this.#images.listHeldImages(scope, signal);
  }

  async releaseImage(scope: string, reference: string, signal: AbortSignal): Promise<void> {
    await this.#images.releaseImage(scope, reference, signal);
  }
}
