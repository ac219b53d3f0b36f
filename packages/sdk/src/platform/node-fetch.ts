import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { usesProxy } from './config.ts';

const OF_NODE = globalThis.fetch;

/** Whether requests go straight to the server, as far as the program has said. */
export function isDirect(): boolean {
  return globalThis.fetch === OF_NODE && !usesProxy();
}

/**
 * The part of fetch that the client uses, on Node's HTTP module: loading the whole of fetch takes longer than most commands, and
 * each call through it half a millisecond more. Streamed bodies, requests that may need a proxy, and programs with a custom fetch
 * use the real fetch.
 */
export async function nodeFetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const { body, method = 'GET', headers, signal } = init;
  const isSimple =
    body === undefined || body === null || typeof body === 'string' || body instanceof Uint8Array;
  if (!isSimple || typeof input !== 'string' || !isDirect()) return await globalThis.fetch(input, init);
  signal?.throwIfAborted();
  const url = new URL(input);
  const { agent, request } = moduleOf(url.protocol);
  // SAFETY: the headers of a client, never of a server.
  const options = {
    agent,
    method,
    headers: headers as Record<string, string>,
    ...(signal ? { signal } : {}),
  };
  const outgoing = request(url, options);
  outgoing.end(body ?? undefined);
  const answer = await answerOf(outgoing);
  // The parts of a response that the client reads.
  return new LightResponse(answer) as unknown as Response;
}

interface HttpModule {
  readonly agent: Agent;
  readonly request: (url: URL, options: object) => ClientRequest;
}

const modules = new Map<string, HttpModule>();

/** Connections are kept alive for as long as the server announces, and do not keep the program running. */
function moduleOf(protocol: string): HttpModule {
  const known = modules.get(protocol);
  if (known !== undefined) return known;
  const { Agent, request } = process.getBuiltinModule(protocol === 'https:' ? 'node:https' : 'node:http');
  const made = { agent: new Agent({ keepAlive: true, scheduling: 'lifo' }), request };
  modules.set(protocol, made);
  return made;
}

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

  /** The methods of a stream that are used; a whole stream would cost more than the rest of a short call. */
  get body(): Pick<ReadableStream<Uint8Array>, 'getReader'> {
    const chunks = this.#message[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
    const read = () => chunks.next();
    const cancel = async () => await Promise.resolve(this.#message.destroy());
    const getReader = () => ({ read, cancel });
    return { getReader } as unknown as Pick<ReadableStream<Uint8Array>, 'getReader'>;
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
