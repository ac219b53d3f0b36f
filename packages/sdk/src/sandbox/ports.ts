import type { CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import type { RestCallOutput } from '../client/rest-call.ts';

/** A way for a browser to one port of a sandbox. */
export type Preview = RestCallOutput<'previews.list'>[number];
/** The token in it is shown once. */
export type NewPreview = RestCallOutput<'previews.create'>;

/** What listens in a sandbox, reached from outside. The server must have a preview domain. */
export class Ports {
  readonly #client: Client;
  readonly #sandboxId: string;

  constructor(client: Client, sandboxId: string) {
    this.#client = client;
    this.#sandboxId = sandboxId;
  }

  /** Makes an address at which a browser finds the port; with `expiresInSecs` only for so long. */
  async preview(
    port: number,
    options: CallOptions & { readonly expiresInSecs?: number } = {},
  ): Promise<NewPreview> {
    const { expiresInSecs } = options;
    const body = { port, ...(expiresInSecs === undefined ? {} : { expires_in_secs: expiresInSecs }) };
    return await this.#client.call('previews.create', { params: this.#params, body }, options);
  }

  async list(options: CallOptions = {}): Promise<readonly Preview[]> {
    return await this.#client.call('previews.list', { params: this.#params }, options);
  }

  /** Connections that it opened end within a minute. */
  async revoke(previewId: string, options: CallOptions = {}): Promise<void> {
    const params = { ...this.#params, preview_id: previewId };
    await this.#client.call('previews.revoke', { params }, options);
  }

  get #params(): { readonly sandbox_id: string } {
    return { sandbox_id: this.#sandboxId };
  }
}
