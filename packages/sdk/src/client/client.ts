import { USER_AGENT, dial, dialAhead, isDirect, platformFetch, readEnvironment } from '#platform';
import { routeOf, type RestRoute } from '@svc/contract/routes';
import type { RestOperationName } from '@svc/contract/rest';
import type { DialRequest, DialledTransport } from '../platform/platform.ts';
import { chunksOf } from './byte-content.ts';
import { CALL_OPTIONS, pickCallOptions, CallBudget, withBudget, type CallOptions } from './call-budget.ts';
import type { RestCallInput, RestCallOutput } from './rest-call.ts';
import { requireKnownOptions, type OptionNames } from './known-options.ts';
import { randomId } from './random-id.ts';
import { prepareRequest, type PreparedRequest, type RequestParts } from './rest-request.ts';
import { readServerEvents } from './server-events.ts';
import { errorOfAnswer, SvcError } from '../svc-error.ts';
import { toSvcError } from './to-svc-error.ts';
import { withRetries } from './with-retries.ts';

const DEFAULT_API_URL = 'http://127.0.0.1:5555';
const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_RETRIES = 3;

export interface ClientOptions {
  /** Address of the server. In Node `SVC_API_URL`, or `SVC_SERVER_URL`, unless given; else `http://127.0.0.1:5555`. */
  readonly apiUrl?: string;
  /** An API key, or a personal access token together with `organization`. In Node `SVC_API_KEY` unless given. */
  readonly apiKey?: string;
  /**
   * Slug of the organization to act in. API keys name theirs already; tokens and sessions need one. In Node `SVC_ORG` unless
   * this or `apiKey` is given.
   */
  readonly organization?: string;
  /**
   * For each call that is given no other; 60 s unless given. Processes and streams are not limited by it, but the opening of the
   * connection that they go over is.
   */
  readonly timeoutMs?: number;
  /** How often a call is repeated at most after transient failures; 3 unless given. */
  readonly maxRetries?: number;
  /** Replaces the global `fetch` in browsers, and the HTTP module in Node. */
  readonly fetch?: typeof globalThis.fetch;
}

const CLIENT_OPTIONS: OptionNames<ClientOptions> = {
  apiUrl: true,
  apiKey: true,
  organization: true,
  timeoutMs: true,
  maxRetries: true,
  fetch: true,
};
const OPTIONS_OF_CALL = { ...CALL_OPTIONS, client: true, organization: true, idempotencyKey: true } as const;

/** Options of a call, and the client to use: that of the environment unless given. */
export interface ClientCallOptions extends CallOptions {
  readonly client?: Client;
}

/**
 * A connection to one server with one credential. Everything else in this library goes through one; calls may overlap.
 * Every change carries an idempotency key of its own, so that a repetition after a lost answer does nothing twice.
 */
export class Client {
  static #ofEnvironment: Client | undefined;
  readonly apiUrl: string;
  readonly organization: string | null;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly #apiKey: string | undefined;
  readonly #fetch: typeof globalThis.fetch;
  #slug: string | undefined;

  constructor(options: ClientOptions = {}) {
    requireKnownOptions(options, CLIENT_OPTIONS);
    const environment = readEnvironment();
    this.apiUrl = checkUrl(options.apiUrl ?? environment.apiUrl ?? DEFAULT_API_URL);
    // An empty key counts as absent, as in the environment.
    this.#apiKey = (options.apiKey ?? environment.apiKey) || undefined;
    // The organization of the environment belongs to the key of the environment.
    const inherited = options.apiKey === undefined ? environment.organization : undefined;
    this.organization = (options.organization ?? inherited) || null;
    this.timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.maxRetries = options.maxRetries ?? DEFAULT_MAX_RETRIES;
    this.#fetch = options.fetch ?? platformFetch;
  }

  /** The client of `SVC_API_URL` and `SVC_API_KEY`, created at its first use. */
  static get ofEnvironment(): Client {
    Client.#ofEnvironment ??= new Client();
    return Client.#ofEnvironment;
  }

  /**
   * Calls any operation of the control plane by its name in `docs/reference/operations.md`. For streams the time limit
   * ends with the head of the answer, the signal does not. A change that is asked for again under its `idempotencyKey` is not
   * made twice; each has one of its own unless given.
   * @throws SvcError
   */
  async call<Name extends RestOperationName>(
    name: Name,
    input: RestCallInput<Name>,
    options: CallOptions & { readonly organization?: string; readonly idempotencyKey?: string } = {},
  ): Promise<RestCallOutput<Name>> {
    requireKnownOptions(options, OPTIONS_OF_CALL);
    const route = routeOf(name);
    const organization = options.organization ?? this.organization;
    const request = prepareRequest(route, input as RequestParts, organization);
    const key = route.method === 'GET' ? {} : { 'idempotency-key': options.idempotencyKey ?? randomId() };
    const keyed = { ...request, headers: { ...request.headers, ...key } };
    const budget = new CallBudget({ timeoutMs: this.timeoutMs, ...pickCallOptions(options) });
    const retries = request.isRepeatable ? this.maxRetries : 0;
    const isStream = route.output !== 'json';
    try {
      const output = await withRetries(budget, retries, async () => {
        const response = await this.#send(keyed, budget);
        return isStream ? response : await response.json();
      });
      budget.stopClock();
      // The table says of which kind the answer is, and the type is derived from the same table.
      if (isStream) return streamed(route, output as Response, budget) as RestCallOutput<Name>;
      budget.end();
      return output as RestCallOutput<Name>;
    } catch (error) {
      budget.end();
      throw error;
    }
  }

  /** Calls a method of the JSON-RPC surface, once: it knows no idempotency keys. @throws SvcError */
  async rpc(method: string, params: object, options: CallOptions = {}): Promise<unknown> {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const headers = { 'content-type': 'application/json' };
    const request = { path: '/api/v1/rpc', method: 'POST', headers, body: () => ({ body: text }) } as const;
    return await withBudget({ timeoutMs: this.timeoutMs, ...options }, async (budget) => {
      const response = await this.#send(request, budget);
      const body = (await response.json()) as { readonly result?: unknown; readonly error?: RpcError };
      if (body.error !== undefined) throw errorOfRpc(body.error, response);
      return body.result;
    });
  }

  /** The slug of the organization that calls act in: the one of the client, or of its API key. */
  async slug(options: CallOptions = {}): Promise<string> {
    this.#slug ??= this.organization ?? (await this.call('organizations.own', {}, options)).slug;
    return this.#slug;
  }

  /** Opens the command channel of a sandbox; sandbox objects call this. @throws SvcError */
  async dial(sandboxId: string, budget: CallBudget): Promise<DialledTransport> {
    const describeRefusal = () => this.#whyRefused(sandboxId);
    return await withRetries(budget, this.maxRetries, () =>
      this.#dial(sandboxId, 'agent', budget, describeRefusal),
    );
  }

  /** Opens the connection for code of a sandbox, without retries: a request can replace it. @throws SvcError */
  async dialCode(sandboxId: string, budget: CallBudget): Promise<DialledTransport> {
    return await this.#dial(sandboxId, 'code/channel', budget, () => Promise.resolve(null));
  }

  /** Whether requests go straight to the server, without a custom `fetch` or a proxy. */
  get isDirect(): boolean {
    return this.#fetch === platformFetch && isDirect();
  }

  /** Opens the connection for the next `dial` while another call is under way; `Sandbox.create` calls this. Does nothing with a custom `fetch`. */
  dialAhead(): void {
    if (this.#fetch === platformFetch) dialAhead(this.apiUrl);
  }

  async #dial(
    sandboxId: string,
    path: string,
    { signal }: CallBudget,
    describeRefusal: DialRequest['describeRefusal'],
  ): Promise<DialledTransport> {
    const template = `/sandboxes/{sandbox_id}/${path}`;
    const route = { method: 'GET', path: template, audience: 'both', body: 'none', output: 'json' } as const;
    const prepared = prepareRequest(route, { params: { sandbox_id: sandboxId } }, this.organization);
    const url = `${this.apiUrl.replace(/^http/, 'ws')}${prepared.path}`;
    return await dial({ url, apiKey: this.#apiKey, signal, describeRefusal });
  }

  /** @throws SvcError, or what fetch throws */
  async #send(
    request: Pick<PreparedRequest, 'path' | 'method' | 'headers' | 'body'>,
    budget: CallBudget,
  ): Promise<Response> {
    const response = await this.#fetch(`${this.apiUrl}${request.path}`, {
      method: request.method,
      headers: {
        ...request.headers,
        ...(this.#apiKey === undefined ? {} : { authorization: `Bearer ${this.#apiKey}` }),
        ...(USER_AGENT === null ? {} : { 'user-agent': USER_AGENT }),
      },
      ...request.body?.(),
      // SAFETY: a redirect would send the credential to the host that it names.
      redirect: 'error',
      signal: budget.signal,
    }).catch((error: unknown) => Promise.reject(this.#unreachable(error)));
    if (response.ok) return response;
    throw errorOfAnswer(response.status, response.headers, await response.text());
  }

  #unreachable(error: unknown): SvcError {
    const reason = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : '';
    const message = `The server at ${this.apiUrl} cannot be reached${reason}`;
    return new SvcError('connection_failed', message, { cause: error });
  }

  /** Asks the control plane why a WebSocket was refused, because browsers do not say. */
  async #whyRefused(sandboxId: string): Promise<SvcError | null> {
    try {
      const { name, status } = await this.call('sandboxes.get', { params: { sandbox_id: sandboxId } });
      if (status === 'running') return null;
      const message = `Sandbox '${name}' is ${status}; start it first`;
      return new SvcError('sandbox_not_running', message, { details: { status } });
    } catch (error) {
      return toSvcError(error);
    }
  }
}

function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    const message = 'The address of the server must be like http://127.0.0.1:5555';
    throw new SvcError('invalid_request', message, { details: { field: 'apiUrl' } });
  }
  return text.replace(/\/+$/, '');
}

/** An abort by the caller, or a broken connection, is thrown like every other failure. */
async function* streamed(
  route: RestRoute,
  response: Response,
  budget: CallBudget,
): AsyncGenerator<unknown, void> {
  const chunks = response.body === null ? none() : chunksOf(response.body);
  try {
    yield* route.output === 'event-stream' ? readServerEvents(chunks) : chunks;
  } catch (error) {
    throw budget.explain(error);
  } finally {
    budget.end();
  }
}

async function* none(): AsyncGenerator<Uint8Array, void> {
  // An answer without a body.
}

interface RpcError {
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>> | null;
}

function errorOfRpc({ message, data }: RpcError, { headers, status }: Response): SvcError {
  const { code = 'invalid_request', ...details } = data ?? {};
  return errorOfAnswer(status, headers, JSON.stringify({ error: { code, message, details } }));
}
