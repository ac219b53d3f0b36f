import { callOptionsOf, withBudgetEach, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import { followEvents } from '../client/follow-events.ts';
import { eachItem } from '../client/pages.ts';
import type { RestCallInput, RestCallOutput } from '../client/rest-call.ts';

/** Which rule decides about a connection, and why. */
export type NetworkExplanation = RestCallOutput<'network.explain'>;
export type NetworkChange = NonNullable<RestCallInput<'network.update'>['body']>;
type Question = RestCallInput<'network.explain'>['body'];

/** A decision of the network policy, with how often it happened. */
export type NetworkDecision = RestCallOutput<'network.log'>['data'][number];

export interface NetworkLogOptions extends CallOptions {
  /** Follows the log until the sandbox stops. Survives lost connections without losing or repeating anything. */
  readonly follow?: boolean;
  /** Only what was denied, or only what was allowed. */
  readonly verdict?: 'allow' | 'deny';
  /** Cursor of the last entry that was seen. */
  readonly after?: string;
  /** Called with the number of denials that are not shown, because the log is bounded. */
  readonly onLeftOut?: (count: number) => void;
}

const PAGE = 1000;

/** The network policy of a sandbox. */
export class SandboxNetwork {
  readonly #client: Client;
  readonly #sandboxId: string;

  constructor(client: Client, sandboxId: string) {
    this.#client = client;
    this.#sandboxId = sandboxId;
  }

  /**
   * Changes the network policy, at once and for later runs. Absent: unchanged; null: the default. Connections that are now denied
   * are closed.
   */
  async update(change: NetworkChange, options: CallOptions = {}): Promise<void> {
    await this.#client.call('network.update', { params: this.#params, body: change }, options);
  }

  /** Says which rule decides about a connection to a name or an address; over TCP unless another protocol is given. */
  async explain(question: Question, options: CallOptions = {}): Promise<NetworkExplanation> {
    return await this.#client.call('network.explain', { params: this.#params, body: question }, options);
  }

  /** The log of network decisions, oldest first: denials up to a limit, and samples of what was allowed. */
  async *log(options: NetworkLogOptions = {}): AsyncGenerator<NetworkDecision, void> {
    const call = callOptionsOf(options, { follow: true, verdict: true, after: true, onLeftOut: true });
    if (options.follow === true) yield* this.#follow(options, call);
    else yield* this.#past(options, call);
  }

  async *#past(options: NetworkLogOptions, call: CallOptions): AsyncGenerator<NetworkDecision, void> {
    const query = { limit: PAGE, ...verdictOf(options) };
    let leftOut = 0;
    yield* eachItem(async (place) => {
      const { cursor = options.after } = place;
      const page = await this.#client.call(
        'network.log',
        { params: this.#params, query: { ...query, ...(cursor === undefined ? {} : { cursor }) } },
        call,
      );
      leftOut = page.left_out;
      return page;
    });
    if (leftOut > 0) options.onLeftOut?.(leftOut);
  }

  async *#follow(options: NetworkLogOptions, call: CallOptions): AsyncGenerator<NetworkDecision, void> {
    const events = withBudgetEach(call, (budget) =>
      followEvents(budget, (lastId = options.after) => {
        const headers = lastId === undefined ? {} : { 'last-event-id': lastId };
        const input = { params: this.#params, query: verdictOf(options), headers };
        return this.#client.call('network.follow', input, { signal: budget.signal });
      }),
    );
    for await (const { event, id, data } of events) {
      // Of the server we talk to all the time.
      if (event === 'left_out') options.onLeftOut?.((data as { readonly count: number }).count);
      if (event === 'decision' && id !== null)
        yield { ...(data as Omit<NetworkDecision, 'cursor'>), cursor: id };
    }
  }

  get #params(): { readonly sandbox_id: string } {
    return { sandbox_id: this.#sandboxId };
  }
}

function verdictOf({ verdict }: NetworkLogOptions): { readonly verdict?: 'allow' | 'deny' } {
  return verdict === undefined ? {} : { verdict };
}
