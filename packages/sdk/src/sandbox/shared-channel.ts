import { abortable } from '@svc/contract/async';
import { ChannelClient } from '@svc/contract/channel';
import { withBudget, withBudgetEach, type CallBudget, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import type { DialledTransport } from '../platform/platform.ts';

/** A channel, and how to say whether it is in use. */
interface OpenChannel {
  readonly channel: ChannelClient;
  readonly transport: DialledTransport;
}

/**
 * The connection that calls of one sandbox object share. It is opened at the first call, and again at the first one after
 * it broke; while it is idle, it does not keep the program running.
 */
export class SharedChannel {
  readonly #client: Client;
  readonly #sandboxId: string;
  #opening: Promise<OpenChannel> | undefined;
  #uses = 0;

  constructor(client: Client, sandboxId: string) {
    this.#client = client;
    this.#sandboxId = sandboxId;
  }

  /** Does work that ends without being closed. @throws SvcError */
  async use<T>(
    options: CallOptions,
    work: (channel: ChannelClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return await withBudget(options, async (budget) => {
      const open = await this.#take(budget);
      try {
        return await work(open.channel, budget.signal);
      } finally {
        this.#giveBack(open);
      }
    });
  }

  /** Like `use`, for an iteration; the connection is in use until the last item was taken. */
  stream<T>(
    options: CallOptions,
    work: (channel: ChannelClient, signal: AbortSignal) => AsyncIterable<T>,
  ): AsyncGenerator<T, void> {
    return withBudgetEach(options, (budget) => this.#streamWithin(budget, work));
  }

  /** A connection for one user alone, who closes it. @throws SvcError */
  async openOwn(options: CallOptions): Promise<ChannelClient> {
    const timeoutMs = Math.min(options.timeoutMs ?? this.#client.timeoutMs, this.#client.timeoutMs);
    return await withBudget({ ...options, timeoutMs }, async (budget) => (await this.#open(budget)).channel);
  }

  close(): void {
    const opening = this.#opening;
    this.#opening = undefined;
    opening?.then(
      ({ channel }) => channel.close(),
      () => undefined,
    );
  }

  async *#streamWithin<T>(
    budget: CallBudget,
    work: (channel: ChannelClient, signal: AbortSignal) => AsyncIterable<T>,
  ): AsyncGenerator<T, void> {
    const open = await this.#take(budget);
    try {
      yield* work(open.channel, budget.signal);
    } finally {
      this.#giveBack(open);
    }
  }

  async #take(budget: CallBudget): Promise<OpenChannel> {
    budget.check();
    this.#opening ??= this.#openShared();
    const open = await abortable(this.#opening, budget.signal);
    this.#uses += 1;
    open.transport.setInUse(true);
    return open;
  }

  #giveBack({ transport }: OpenChannel): void {
    this.#uses -= 1;
    if (this.#uses === 0) transport.setInUse(false);
  }

  /**
   * Several calls may wait for the same connection, so no caller's signal ends its opening, only its own time limit. That is the
   * one of every call of the client: of a hundred sandboxes that start at once on few cores the last ones are slow to answer.
   */
  async #openShared(): Promise<OpenChannel> {
    try {
      const open = await withBudget({ timeoutMs: this.#client.timeoutMs }, (budget) => this.#open(budget));
      void open.channel.closed.then(() => this.#forget(open));
      return open;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  async #open(budget: CallBudget): Promise<OpenChannel> {
    const transport = await this.#client.dial(this.#sandboxId, budget);
    const channel = await ChannelClient.connect(transport, { signal: budget.signal });
    return { channel, transport };
  }

  async #forget(ended: OpenChannel): Promise<void> {
    const current = await this.#opening?.catch(() => undefined);
    if (current === ended) this.#opening = undefined;
  }
}
