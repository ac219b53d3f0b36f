import { Client, type ClientCallOptions } from '../client/client.ts';
import type { RestCallOutput } from '../client/rest-call.ts';

/** The capabilities of a server: isolation classes, the SSH gateway, the preview domain, limits. */
export type ServerCapabilities = RestCallOutput<'capabilities.get'>;

export const Capabilities = {
  async get(options: ClientCallOptions = {}): Promise<ServerCapabilities> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('capabilities.get', {}, options);
  },
} as const;
