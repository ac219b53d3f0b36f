import { PlatformError } from '@svc/contract';
import type {
  FetchedImage,
  FetchProgress,
  HeldImagesView,
  HeldImageView,
  PullImage,
} from '@svc/contract/orchestrator';
import type { FleetMembers } from './fleet-members.ts';
import type { ImageStore } from './image-store.ts';

/** Images on several nodes: each has its own. */
export class FleetImages implements ImageStore {
  readonly #members: FleetMembers;

  constructor(members: FleetMembers) {
    this.#members = members;
  }

  /** On every node that answers, so that a sandbox starts at once on each of them. Progress is that of the first. */
  async pullImage(
    request: PullImage,
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal,
  ): Promise<FetchedImage> {
    const pulls = this.#members.all.map(
      async ({ ports }, index) =>
        await ports.imageStore.pullImage(request, index === 0 ? onProgress : ignore, signal),
    );
    const results = await Promise.allSettled(pulls);
    signal.throwIfAborted();
    const away = (error: unknown) => PlatformError.is(error, 'orchestrator_unreachable');
    const failures = results
      .filter((result) => result.status === 'rejected')
      .map(({ reason }) => reason as unknown);
    const pulled = results.find((result) => result.status === 'fulfilled');
    const failure =
      failures.find((error) => !away(error)) ?? (pulled === undefined ? failures[0] : undefined);
    if (failure !== undefined) throw failure;
    if (pulled === undefined) throw new PlatformError('orchestrator_unreachable', 'the fleet has no node');
    return pulled.value;
  }

  /** Each image once; what nodes store counts on each of them. */
  async listHeldImages(scope: string, signal: AbortSignal): Promise<HeldImagesView> {
    const { answers } = await this.#members.ask(
      async ({ imageStore }, deadline) => await imageStore.listHeldImages(scope, deadline),
      signal,
    );
    const images = new Map<string, HeldImageView>();
    for (const image of answers.flatMap(({ answer }) => answer.images)) {
      const known = images.get(image.id);
      images.set(image.id, known === undefined ? image : join(known, image));
    }
    return {
      images: [...images.values()],
      storedBytes: answers.reduce((sum, { answer }) => sum + answer.storedBytes, 0),
    };
  }

  /** On every node, so all of them must answer. */
  async releaseImage(scope: string, reference: string, signal: AbortSignal): Promise<void> {
    const missing: unknown[] = [];
    const asked = await this.#members.ask(async ({ imageStore }, deadline) => {
      try {
        await imageStore.releaseImage(scope, reference, deadline);
        return true;
      } catch (error) {
        if (!PlatformError.is(error, 'image_not_found')) throw error;
        missing.push(error);
        return false;
      }
    }, signal);
    this.#members.requireAll(asked);
    if (!asked.answers.some(({ answer }) => answer)) throw missing[0];
  }
}

function join(one: HeldImageView, other: HeldImageView): HeldImageView {
  const usedAt =
    [one.usedAt, other.usedAt]
      .filter((time) => time !== null)
      .toSorted()
      .at(-1) ?? null;
  const references = [...new Set([...one.references, ...other.references])];
  return { ...one, references, usedAt, isInUse: one.isInUse || other.isInUse };
}

function ignore(): void {
  // One bar of progress is shown for all nodes.
}
