import type { FetchedImage, FetchProgress, HeldImagesView, PullImage } from '@svc/contract/orchestrator';

/**
 * The part of the orchestrator that keeps images.
 * - `pullImage` fetches an image ahead, for sandboxes of the same `scope`; the policy says whether one that is there is asked for
 *   again. A caller that aborts stops waiting; other callers still get the image.
 * - `listHeldImages` lists the images that a scope holds, having pulled or used them, and their sizes.
 * - `releaseImage` gives one up, unless something that was made for the scope uses it (`image_in_use`). It stays while another scope
 *   holds it.
 * - When the orchestrator is away every call fails with `orchestrator_unreachable`.
 */
export interface ImageStore {
  pullImage(
    request: PullImage,
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal,
  ): Promise<FetchedImage>;
  listHeldImages(scope: string, signal: AbortSignal): Promise<HeldImagesView>;
  releaseImage(scope: string, reference: string, signal: AbortSignal): Promise<void>;
}
