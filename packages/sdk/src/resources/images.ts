import type { FetchProgress as Progress, ImageView, PulledImage as Pulled } from '@svc/contract/rest';
import { callOptionsOf, withBudget } from '../client/call-budget.ts';
import { Client, type ClientCallOptions } from '../client/client.ts';
import type { RestCallInput } from '../client/rest-call.ts';
import { errorOfEnvelope, SvcError } from '../svc-error.ts';

/** The current step and its progress. */
export type FetchProgress = Progress;
/** An image that is ready for sandboxes. */
export type PulledImage = Pulled;

/** An image of the organization, or one that the operator provides. */
export type ImageInfo = ImageView;

type PullBody = RestCallInput<'images.pull'>['body'];

export interface PullOptions extends ClientCallOptions {
  /** `always` asks the registry, and downloads what is not there; the others are as in a create. */
  readonly policy?: NonNullable<PullBody['pull_policy']>;
  /** User name and password for the registry; those of the organization unless given. */
  readonly registry?: NonNullable<PullBody['registry']>;
  /** Called with the progress. */
  readonly onProgress?: (progress: FetchProgress) => void;
}

/** Images that sandboxes are made from. */
export const Images = {
  /** Those that the organization has pulled or used, and those that the operator provides. */
  async list(options: ClientCallOptions = {}): Promise<readonly ImageInfo[]> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('images.list', {}, options);
  },

  /** Removes an image from the organization, by a name or its id. Remove the sandboxes and snapshots that use it first. */
  async remove(reference: string, options: ClientCallOptions = {}): Promise<void> {
    const { client = Client.ofEnvironment } = options;
    await client.call('images.remove', { params: { reference } }, options);
  },

  /** Fetches an image ahead of the first sandbox that needs it. No time limit unless `timeoutMs` is given. */
  async pull(reference: string, options: PullOptions = {}): Promise<PulledImage> {
    const call = callOptionsOf(options, { policy: true, registry: true, onProgress: true });
    const { client = Client.ofEnvironment, policy, registry, onProgress } = options;
    const body = {
      reference,
      ...(policy === undefined ? {} : { pull_policy: policy }),
      ...(registry === undefined ? {} : { registry }),
    };
    return await withBudget(call, async (budget) => {
      const events = await client.call('images.pull', { body }, { signal: budget.signal });
      for await (const { event, data } of events) {
        // The table of operations gives the events of this stream this type.
        if (event === 'progress') onProgress?.(data as FetchProgress);
        if (event === 'done') return data as PulledImage;
        if (event === 'error') throw errorOfEnvelope(data);
      }
      throw new SvcError('connection_failed', `The connection broke while ${reference} was pulled`);
    });
  },
} as const;
