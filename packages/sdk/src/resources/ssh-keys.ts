import { Client, type ClientCallOptions } from '../client/client.ts';
import { requireKnownOptions } from '../client/known-options.ts';
import type { RestCallOutput } from '../client/rest-call.ts';

/** A public key that opens the sandboxes of its user over SSH. */
export type SshKey = RestCallOutput<'sshKeys.list'>[number];

/** The SSH keys of the user whose token the client has. API keys belong to no user, and have none. */
export const SshKeys = {
  /** Newest first. */
  async list(options: ClientCallOptions = {}): Promise<readonly SshKey[]> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('sshKeys.list', {}, options);
  },

  /** `publicKey`: a line of an OpenSSH .pub file. @throws SvcError `name_already_exists` when the user has it already */
  async add(
    key: { readonly name: string; readonly publicKey: string },
    options: ClientCallOptions = {},
  ): Promise<SshKey> {
    requireKnownOptions(key, { name: true, publicKey: true });
    const { client = Client.ofEnvironment } = options;
    const body = { name: key.name, public_key: key.publicKey };
    return await client.call('sshKeys.create', { body }, options);
  },

  /** Sessions that it opened end within a minute. */
  async remove(id: string, options: ClientCallOptions = {}): Promise<void> {
    const { client = Client.ofEnvironment } = options;
    await client.call('sshKeys.remove', { params: { id } }, options);
  },
} as const;
