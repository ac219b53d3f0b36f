import type { CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import type { RestCallInput, RestCallOutput } from '../client/rest-call.ts';

/** Which rule decides about a connection, and why. */
export type NetworkExplanation = RestCallOutput<'network.explain'>;
export type NetworkChange = NonNullable<RestCallInput<'network.update'>['body']>;
type Question = RestCallInput<'network.explain'>['body'];

/** What a sandbox may reach. */
export class SandboxNetwork {
  readonly #client: Client;
  readonly #sandboxId: string;

  constructor(client: Client, sandboxId: string) {
    this.#client = client;
    this.#sandboxId = sandboxId;
  }

  /**
   * Changes what the sandbox may reach, at once and for its later runs. What is absent stays, null is the default. Connections that
   * are denied now end.
   */
  async update(change: NetworkChange, options: CallOptions = {}): Promise<void> {
    await this.#client.call('network.update', { params: this.#params, body: change }, options);
  }

  /** Says which rule decides about a connection to a name or an address; over TCP unless another protocol is given. */
  async explain(question: Question, options: CallOptions = {}): Promise<NetworkExplanation> {
    return await this.#client.call('network.explain', { params: this.#params, body: question }, options);
  }

  get #params(): { readonly sandbox_id: string } {
    return { sandbox_id: this.#sandboxId };
  }
}
