import { Client, type ClientCallOptions } from '../client/client.ts';
import type { RestCallOutput } from '../client/rest-call.ts';

/** A secret of an organization, without its value. */
export type Secret = RestCallOutput<'secrets.list'>[number];

type Options = ClientCallOptions & { readonly organization?: string };

/** The secrets of the organization that the client acts in. They take a user's token: API keys use secrets and do not keep them. */
export const Secrets = {
  /** By name. */
  async list(options: Options = {}): Promise<readonly Secret[]> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('secrets.list', {}, options);
  },

  /** Sandboxes that use it have the new value within seconds. */
  async set(name: string, value: string, options: Options = {}): Promise<Secret> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('secrets.put', { params: { name }, body: { value } }, options);
  },

  /** @throws SvcError `invalid_state_transition` as long as a sandbox refers to it */
  async remove(name: string, options: Options = {}): Promise<void> {
    const { client = Client.ofEnvironment } = options;
    await client.call('secrets.remove', { params: { name } }, options);
  },
} as const;
