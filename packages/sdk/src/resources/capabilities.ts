import { Client, type ClientCallOptions } from '../client/client.ts';
import type { RestCallOutput } from '../client/rest-call.ts';

/** What a server can do: ways to isolate, the SSH gateway, the domain of previews, limits. */
export type ServerCapabilities = RestCallOutput<'capabilities.get'>;

export const Capabilities = {
  async get(options: ClientCallOptions = {}): Promise<ServerCapabilities> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('capabilities.get', {}, options);
  },
} as const;
