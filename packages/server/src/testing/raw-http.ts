import { Agent, request } from 'node:http';

export interface RawRequest {
  readonly method: string;
  /** Sent unchanged: `..` and odd escapes stay what they are. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Waits only for the head of the answer, or for all of a refusal. */
  readonly isStream?: boolean;
}

export interface RawReply {
  readonly status: number;
  readonly text: string;
}

const OK_END = 300;

/** Sends malformed requests over one connection. A missing answer is an error. */
export class RawHttp {
  readonly #url: URL;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #answerMs: number;

  constructor(url: string, answerMs: number) {
    this.#url = new URL(url);
    this.#answerMs = answerMs;
  }

  async send({ method, path, headers = {}, body, isStream = false }: RawRequest): Promise<RawReply> {
    const { promise, resolve, reject } = Promise.withResolvers<RawReply>();
    const { hostname, port } = this.#url;
    const signal = AbortSignal.timeout(this.#answerMs);
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const asked = request({
      hostname,
      port,
      method,
      path,
      headers: { ...headers, ...length },
      agent: this.#agent,
      signal,
    });
    asked.on('error', reject);
    asked.on('response', (response) => {
      const status = response.statusCode ?? 0;
      if (isStream && status < OK_END) {
        resolve({ status, text: '' });
        asked.destroy();
        return;
      }
      Array.fromAsync(response as AsyncIterable<Buffer>).then(
        (chunks) => resolve({ status, text: Buffer.concat(chunks).toString() }),
        reject,
      );
    });
    asked.end(body);
    return await promise;
  }

  close(): void {
    this.#agent.destroy();
  }
}
