import type { Client, RestCallOutput } from '@svc/sdk';
import type { Command } from 'commander';
import { readGlobals } from '../globals.ts';
import { UsageError } from '../usage-error.ts';

export const ROLES = ['member', 'admin', 'owner'] as const;
export type Role = (typeof ROLES)[number];

type Member = RestCallOutput<'members.list'>['data'][number];
type Invite = RestCallOutput<'invites.list'>[number];

/** The members of the chosen organization, with the rights of the token's user. */
export class Members {
  readonly client: Client;
  readonly organization: string;

  private constructor(client: Client, organization: string) {
    this.client = client;
    this.organization = organization;
  }

  /** Runs `work` with a client of the chosen server. */
  static async use<T>(command: Command, work: (members: Members) => Promise<T>): Promise<T> {
    const { connectServer } = await import('./connect.ts');
    const { inOrganization } = await import('./remote-credentials.ts');
    const client = await connectServer(readGlobals(command));
    return await inOrganization(client, 'Members are kept by users', ({ organization }) =>
      work(new Members(client, organization)),
    );
  }

  async list(): Promise<readonly Member[]> {
    const found: Member[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const query = { limit: 100, ...(cursor === undefined ? {} : { cursor }) };
      const page = await this.client.call('members.list', { query }, this.#here);
      found.push(...page.data);
      cursor = page.next_cursor;
    }
    return found;
  }

  async find(email: string): Promise<Member | undefined> {
    return (await this.list()).find((member) => isSame(member.email, email));
  }

  async findInvite(email: string): Promise<Invite | undefined> {
    return (await this.invites()).find((invite) => isSame(invite.email, email));
  }

  async invites(): Promise<readonly Invite[]> {
    return await this.client.call('invites.list', {}, this.#here);
  }

  async invite(email: string, role: Role): Promise<RestCallOutput<'invites.create'>> {
    return await this.client.call('invites.create', { body: { email, role } }, this.#here);
  }

  async setRole(userId: string, role: Role): Promise<void> {
    await this.client.call('members.update', { params: { user_id: userId }, body: { role } }, this.#here);
  }

  async remove(userId: string): Promise<void> {
    await this.client.call('members.remove', { params: { user_id: userId } }, this.#here);
  }

  async withdraw(inviteId: string): Promise<void> {
    await this.client.call('invites.remove', { params: { invite_id: inviteId } }, this.#here);
  }

  stranger(email: string): UsageError {
    return new UsageError(`${email} is no member of ${this.organization}\n  try: svc member ls`);
  }

  get #here(): { readonly organization: string } {
    return { organization: this.organization };
  }
}

/** Normalizes an address as the server does to compare it. */
function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
