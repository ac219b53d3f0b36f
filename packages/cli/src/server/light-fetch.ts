import type { ClientRequest, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

/**
 * As much of fetch as our client uses, on Node's HTTP module: loading the whole of fetch takes longer than most commands.
 * What is sent piece by piece goes the long way.
 */
export const lightFetch: typeof globalThis.fetch = async (input, init = {}) => {
  const { body, method = 'GET', headers, signal } = init;
  const isSimple =
    body === undefined || body === null || typeof body === 'string' || body instanceof Uint8Array;
  if (!isSimple || typeof input !== 'string') return await globalThis.fetch(input, init);
  const url = new URL(input);
  // SAFETY: the headers of a client, never of a server.
  const options = { method, headers: headers as Record<string, string>, ...(signal ? { signal } : {}) };
  const outgoing = process
    .getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http')
    .request(url, options);
  outgoing.end(body ?? undefined);
  const answer = await answerOf(outgoing);
  // The parts of a response that our client reads.
  return new LightResponse(answer) as unknown as Response;
};

async function answerOf(outgoing: ClientRequest): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) => {
    outgoing.once('response', resolve);
    outgoing.on('error', (cause) => reject(new Error('the request failed', { cause })));
  });
}

class LightResponse {
  readonly #message: IncomingMessage;
  readonly headers = { get: (name: string) => this.#header(name) };

  constructor(message: IncomingMessage) {
    this.#message = message;
  }

  get status(): number {
    return this.#message.statusCode ?? 0;
  }

  /** A redirect is no success either, and is never followed: it would hand the credential on. */
  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  get body(): ReadableStream<Uint8Array> {
    return Readable.toWeb(this.#message);
  }

  async text(): Promise<string> {
    return await text(this.#message);
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }

  #header(name: string): string | null {
    const value = this.#message.headers[name.toLowerCase()];
    return value === undefined ? null : String(value);
  }
}
