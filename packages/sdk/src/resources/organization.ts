import type { CallOptions } from '../client/call-budget.ts';
import { Client, type ClientCallOptions } from '../client/client.ts';
import { requireKnownOptions } from '../client/known-options.ts';
import { eachItem } from '../client/pages.ts';
import type { RestCallOutput } from '../client/rest-call.ts';
import { SvcError } from '../svc-error.ts';

type Member = RestCallOutput<'members.list'>['data'][number];
type ApiKey = RestCallOutput<'apiKeys.list'>['data'][number];
type Role = Member['role'];

/** An organization, its members and API keys. Changes need a user's token: API keys cannot create API keys. */
export class Organization {
  readonly client: Client;
  readonly info: RestCallOutput<'organizations.own'>;

  private constructor(client: Client, info: RestCallOutput<'organizations.own'>) {
    this.client = client;
    this.info = info;
  }

  /** The organization that the client acts in. */
  static async me(options: ClientCallOptions = {}): Promise<Organization> {
    const { client = Client.ofEnvironment } = options;
    const name = client.organization === null ? 'organizations.own' : 'organizations.get';
    return new Organization(client, await client.call(name, {}, options));
  }

  /** All that the user of the client's token belongs to. */
  static async list(options: ClientCallOptions = {}): Promise<readonly Organization[]> {
    const { client = Client.ofEnvironment } = options;
    const all = await client.call('organizations.list', {}, options);
    return all.map((info) => new Organization(client, info));
  }

  get slug(): string {
    return this.info.slug;
  }

  /** In the order they joined. */
  async *members(options: CallOptions = {}): AsyncGenerator<Member, void> {
    yield* eachItem((cursor) =>
      this.client.call('members.list', { query: { limit: 100, ...cursor } }, options),
    );
  }

  async setRole(userId: string, role: Role, options: CallOptions = {}): Promise<Member> {
    const input = { params: { user_id: userId }, body: { role } };
    return await this.client.call('members.update', input, this.#here(options));
  }

  async removeMember(userId: string, options: CallOptions = {}): Promise<void> {
    await this.client.call('members.remove', { params: { user_id: userId } }, this.#here(options));
  }

  /** @returns the token that the invited person accepts with: it is shown once */
  async invite(email: string, role: Role = 'member', options: CallOptions = {}): Promise<string> {
    const invite = await this.client.call('invites.create', { body: { email, role } }, this.#here(options));
    return requireSecret(invite.token, invite.id, 'invite');
  }

  /** Newest first; their secrets are not shown again. */
  async *apiKeys(options: CallOptions = {}): AsyncGenerator<ApiKey, void> {
    const call = this.#here(options);
    yield* eachItem((cursor) => this.client.call('apiKeys.list', { query: { limit: 100, ...cursor } }, call));
  }

  /** @returns the key, which is shown once, and the id to revoke it by */
  async createApiKey(
    key: { readonly name: string; readonly expiresAt?: string },
    options: CallOptions = {},
  ): Promise<{ readonly id: string; readonly key: string }> {
    requireKnownOptions(key, { name: true, expiresAt: true });
    const body = { name: key.name, ...(key.expiresAt === undefined ? {} : { expires_at: key.expiresAt }) };
    const made = await this.client.call('apiKeys.create', { body }, this.#here(options));
    return { id: made.id, key: requireSecret(made.key, made.id, 'API key') };
  }

  async revokeApiKey(id: string, options: CallOptions = {}): Promise<void> {
    await this.client.call('apiKeys.revoke', { params: { id } }, this.#here(options));
  }

  #here(options: CallOptions): CallOptions & { readonly organization: string } {
    return { ...options, organization: this.slug };
  }
}

/** A call that was repeated after its answer was lost returns no secret. */
function requireSecret(secret: string | null, id: string, what: string): string {
  if (secret !== null) return secret;
  const message = `The ${what} was made, but its secret was lost on the way; remove ${id} and make another`;
  throw new SvcError('connection_failed', message, { details: { id } });
}
