import { ChannelError } from '@svc/contract/channel';
import { callOptionsOf, withBudget, type CallBudget, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import type { RestCallOutput } from '../client/rest-call.ts';
import { toSvcError } from '../client/to-svc-error.ts';
import type { SharedChannel } from './shared-channel.ts';

/** A preview: an address for one port of a sandbox. */
export type Preview = RestCallOutput<'previews.list'>[number];
/** The token in it is shown once. */
export type NewPreview = RestCallOutput<'previews.create'>;

/** The end of the program that waits for a port. */
const WAIT_MS = 60_000;
const ATTEMPT_PAUSE_MS = 100;
const LOOPBACK = '127.0.0.1';

/** Access to ports of a sandbox from outside. The server must have a preview domain, as local ones do. */
export class Ports {
  readonly #client: Client;
  readonly #sandboxId: string;
  readonly #channel: SharedChannel;

  constructor(client: Client, sandboxId: string, channel: SharedChannel) {
    this.#client = client;
    this.#sandboxId = sandboxId;
    this.#channel = channel;
  }

  /**
   * An address of the port that opens as it is, in a browser and in `fetch`. Where the server asks for a token one is made
   * and stands in it: for a day, or for `expiresInSecs`.
   */
  async url(port: number, options: CallOptions & { readonly expiresInSecs?: number } = {}): Promise<string> {
    const call = callOptionsOf(options, { expiresInSecs: true });
    const input = { params: this.#params, body: bodyOf(port, options.expiresInSecs) };
    // The retry of a call whose answer was lost returns everything but the secret; a new call creates a new one.
    for (;;) {
      const { url } = await this.#client.call('previews.open', input, call);
      if (url !== null) return url;
    }
  }

  /**
   * Waits until something listens on the port of the sandbox's loopback; a minute, or `timeoutMs`.
   * @throws SvcError `timeout`; `sandbox_not_running` when the sandbox ends meanwhile
   */
  async waitFor(port: number, options: CallOptions = {}): Promise<void> {
    const limits = { timeoutMs: WAIT_MS, ...options };
    await withBudget(limits, async (budget) => {
      while (!(await this.#isListening(port, budget))) await budget.pause(ATTEMPT_PAUSE_MS);
    });
  }

  /** Opens the port without a token to every client that can reach the server's previews, until its end or `revoke`. */
  async share(port: number, options: CallOptions & { readonly expiresInSecs: number }): Promise<Preview> {
    const call = callOptionsOf(options, { expiresInSecs: true });
    const body = { ...bodyOf(port, options.expiresInSecs), public: true };
    const { token: _none, ...shared } = await this.#client.call(
      'previews.create',
      { params: this.#params, body },
      call,
    );
    return shared;
  }

  /** Creates an address with a token for the port; with `expiresInSecs` it expires. */
  async preview(
    port: number,
    options: CallOptions & { readonly expiresInSecs?: number } = {},
  ): Promise<NewPreview> {
    const call = callOptionsOf(options, { expiresInSecs: true });
    const body = bodyOf(port, options.expiresInSecs);
    return await this.#client.call('previews.create', { params: this.#params, body }, call);
  }

  async list(options: CallOptions = {}): Promise<readonly Preview[]> {
    return await this.#client.call('previews.list', { params: this.#params }, options);
  }

  /** Connections that it opened end within a minute. */
  async revoke(previewId: string, options: CallOptions = {}): Promise<void> {
    const params = { ...this.#params, preview_id: previewId };
    await this.#client.call('previews.revoke', { params }, options);
  }

  async #isListening(port: number, budget: CallBudget): Promise<boolean> {
    try {
      return await this.#channel.use({ signal: budget.signal }, async (channel, signal) => {
        (await channel.connectTcp(LOOPBACK, port, { signal })).close();
        return true;
      });
    } catch (error) {
      const { cause } = toSvcError(error);
      // The next attempt finds out why a connection ended: it fails when the sandbox has ended.
      if (cause instanceof ChannelError && (cause.kind === 'refused' || cause.kind === 'closed'))
        return false;
      throw error;
    }
  }

  get #params(): { readonly sandbox_id: string } {
    return { sandbox_id: this.#sandboxId };
  }
}

function bodyOf(port: number, expiresInSecs: number | undefined) {
  return { port, ...(expiresInSecs === undefined ? {} : { expires_in_secs: expiresInSecs }) };
}
