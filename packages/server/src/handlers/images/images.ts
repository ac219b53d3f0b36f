import { PlatformError, type ErrorEnvelope } from '@svc/contract';
import type { FetchProgress, HeldImageView } from '@svc/contract/orchestrator';
import type { ImageView, PulledImage, RestInput, RestOperations, ServerEvent } from '@svc/contract/rest';
import { maxImageBytes, registryAuthFor } from '../../sandboxes/engine-request.ts';
import type { ImageStore } from '../../orchestrator/image-store.ts';
import { requireRegistry } from '../../sandboxes/require-registry.ts';
import { viewProgress } from '../sandboxes/progress.ts';
import { requireEngine } from '../../orchestrator/require-engine.ts';
import { recordRefusal } from '../../dispatch/record-refusal.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';
import type { HostStorage } from '../../accounting/host-storage.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import type { Logger } from 'pino';

/** Concurrent pulls of one organization. Pulls for sandboxes that start are not counted. */
const MAX_PULLS = 4;
const RETRY_AFTER_SECONDS = 5;

type PullBody = RestInput<RestOperations['images.pull']>['body'];

export interface ImageParts {
  readonly database: Database;
  readonly imageStore: ImageStore;
  readonly health: EngineHealth;
  readonly storage: HostStorage;
  readonly sealer: Sealer;
  readonly logger: Logger;
}

export function imageHandlers(
  parts: ImageParts,
): Pick<RestHandlers, Extract<keyof RestHandlers, `images.${string}`>> {
  const pulls = new Map<string, number>();
  return {
    'images.list': async (_input, call) => {
      const { images } = await parts.imageStore.listHeldImages(call.organization.id, call.signal);
      return images.map(viewImage);
    },
    'images.remove': async ({ params: { reference } }, call) => {
      await parts.imageStore.releaseImage(call.organization.id, reference, call.signal);
      await call.commit(({ record }) =>
        record({ type: 'image_removed', category: 'image', payload: { reference } }),
      );
      return { message: `Image ${reference} is not the organization's any more` };
    },
    'images.pull': async ({ body }, call) => {
      requireEngine(parts.health);
      await parts.storage.require();
      const { id } = call.organization;
      await requireRegistry(parts.database, id, body.registry ?? null, body.reference);
      countPull(pulls, id, call.signal);
      return pull(parts, call, body);
    },
  };
}

function viewImage(image: HeldImageView): ImageView {
  const { id, digest, references, sizeBytes, createdAt, usedAt, isInUse } = image;
  return {
    id,
    digest,
    references: [...references],
    size_bytes: sizeBytes,
    created_at: createdAt,
    last_used_at: usedAt,
    is_provided: usedAt === null,
    in_use: isInUse,
  };
}

/** Until the caller goes away, which also happens at the end. @throws PlatformError `rate_limited` */
function countPull(pulls: Map<string, number>, organizationId: string, gone: AbortSignal): void {
  const count = pulls.get(organizationId) ?? 0;
  if (count >= MAX_PULLS) {
    const message = `${count} pulls of your organization are under way, which is the most; wait for one to end`;
    throw new PlatformError('rate_limited', message, {
      details: { limit: 'pulls', maximum: MAX_PULLS, retry_after_seconds: RETRY_AFTER_SECONDS },
    });
  }
  gone.throwIfAborted();
  pulls.set(organizationId, count + 1);
  gone.addEventListener('abort', () => {
    const left = (pulls.get(organizationId) ?? 1) - 1;
    if (left === 0) pulls.delete(organizationId);
    else pulls.set(organizationId, left);
  });
}

/** The head of the answer is sent before the registry has said anything, so a failure is an event like the others. */
async function* pull(parts: ImageParts, call: RestCall, body: PullBody): AsyncGenerator<ServerEvent> {
  const { reference } = body;
  const progress = new LatestProgress();
  const work = fetchImage(parts, call, body, (step) => progress.set(step)).finally(() => progress.end());
  // Read below, after all progress.
  work.catch(() => undefined);
  for await (const { message, doneBytes, totalBytes } of progress) {
    yield { event: 'progress', data: viewProgress({ message, done: doneBytes, total: totalBytes }) };
  }
  try {
    const { digest, sizeBytes } = await work;
    const image: PulledImage = { reference, digest, size_bytes: sizeBytes };
    await call.commit(({ record }) =>
      record({ type: 'image_pulled', category: 'image', payload: { reference, digest } }),
    );
    yield { event: 'done', data: image };
  } catch (error) {
    if (call.signal.aborted) return;
    if (!PlatformError.is(error)) parts.logger.error({ err: error, reference }, 'a pull failed');
    await noteRefusal(parts, call, error);
    yield { event: 'error', data: envelopeOf(error, call) };
  }
}

/** Records a refusal that dispatch cannot see, because the answer has begun. */
async function noteRefusal({ database }: ImageParts, call: RestCall, error: unknown): Promise<void> {
  const { organization, actor, requestId, sourceAddress } = call;
  const origin = {
    organizationId: organization.id,
    operation: 'images.pull',
    actor,
    requestId,
    sourceAddress,
  };
  await recordRefusal(database, error, origin);
}

async function fetchImage(
  parts: ImageParts,
  { organization, signal }: RestCall,
  { reference, pull_policy: policy = 'always', registry = null }: PullBody,
  onProgress: (progress: FetchProgress) => void,
) {
  const auth = await registryAuthFor(parts, organization.id, reference, registry);
  // SAFETY: the scope is the organization, so an image that its password opened is visible to it alone.
  const maxHeldBytes = await maxImageBytes(parts.database, organization.id);
  const request = { reference, policy, auth, scope: organization.id, maxHeldBytes };
  return await parts.imageStore.pullImage(request, onProgress, signal);
}

function envelopeOf(error: unknown, { requestId }: RestCall): ErrorEnvelope {
  if (PlatformError.is(error)) {
    return { error: { code: error.code, message: error.message, details: error.details ?? null } };
  }
  const message = `The server met a bug; its log says more under request ${requestId}`;
  return { error: { code: 'internal', message, details: { request_id: requestId } } };
}

/** The latest progress of a pull; progress that the reader has not read yet is replaced. */
class LatestProgress implements AsyncIterable<FetchProgress> {
  #latest: FetchProgress | undefined;
  #isOver = false;
  #wake = Promise.withResolvers<void>();

  set(progress: FetchProgress): void {
    this.#latest = progress;
    this.#wake.resolve();
  }

  end(): void {
    this.#isOver = true;
    this.#wake.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<FetchProgress, void> {
    for (;;) {
      await this.#wake.promise;
      this.#wake = Promise.withResolvers();
      const progress = this.#latest;
      this.#latest = undefined;
      if (progress !== undefined) yield progress;
      if (this.#isOver) return;
    }
  }
}
