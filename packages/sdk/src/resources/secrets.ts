import { Client, type ClientCallOptions } from '../client/client.ts';
import { requireKnownOptions } from '../client/known-options.ts';
import type { RestCallOutput } from '../client/rest-call.ts';
import { toHostPattern } from './host-pattern.ts';

/** A secret of an organization, without its value. */
export type Secret = RestCallOutput<'secrets.list'>[number];

export interface NewSecret {
  readonly value: string;
  /** Hosts to which the value may be sent: `api.example.com`, or `*.example.com` for it and all below it. */
  readonly hosts: readonly string[];
  /** Authorities (PEM) that sandboxes which use it may trust, beside those that the server's host trusts. */
  readonly authorities?: readonly string[];
}

type SecretHosts = Secret['allowed_hosts'];
type Options = ClientCallOptions & { readonly organization?: string };

/** The secrets of the organization that the client acts in. Managing them needs a user's token: API keys can only use secrets. */
export const Secrets = {
  /** By name. */
  async list(options: Options = {}): Promise<readonly Secret[]> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('secrets.list', {}, options);
  },

  /** Sandboxes that use it have the new value and hosts within seconds. */
  async set(name: string, secret: NewSecret, options: Options = {}): Promise<Secret> {
    const { client = Client.ofEnvironment } = options;
    requireKnownOptions(secret, { value: true, hosts: true, authorities: true });
    const { value, hosts, authorities } = secret;
    const body = {
      value,
      // The server refuses `*` with a clear message.
      allowed_hosts: hosts.map(toHostPattern) as SecretHosts,
      ...(authorities === undefined ? {} : { upstream_ca_cert: [...authorities] }),
    };
    return await client.call('secrets.put', { params: { name }, body }, options);
  },

  /** @throws SvcError `invalid_state_transition` as long as a sandbox refers to it */
  async remove(name: string, options: Options = {}): Promise<void> {
    const { client = Client.ofEnvironment } = options;
    await client.call('secrets.remove', { params: { name } }, options);
  },
} as const;
