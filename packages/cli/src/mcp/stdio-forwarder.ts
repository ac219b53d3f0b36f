import { setTimeout as delay } from 'node:timers/promises';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import {
  isInitializedNotification,
  isInitializeRequest,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js';
import { ServerConnection } from './server-connection.ts';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const UNAUTHORIZED = 401;
const NOT_FOUND = 404;

const INTERNAL_ERROR = -32_603;
/** Time limit for pending answers when standard input ends. */
const ANSWER_TIMEOUT_MS = 60_000;
const POLL_MS = 20;

/**
 * Forwards MCP messages between standard input and output and a server. Only messages are written to standard output.
 * - A request that cannot be delivered is answered with the reason.
 * - When the server has forgotten the session, as after its restart, a new one is opened without the client noticing.
 * - Messages that come before the session is open wait for it.
 * - When standard input ends, the session ends as soon as all requests are answered.
 */
export class StdioForwarder {
  readonly #serverUrl: string;
  readonly #apiKey: string | undefined;
  readonly #client = new StdioServerTransport();
  readonly #pending = new Set<RequestId>();
  readonly #closed = Promise.withResolvers<void>();
  #initialize: JSONRPCMessage | undefined;
  #connection: ServerConnection;
  #opened: Promise<void> = Promise.resolve();
  #reopening: Promise<void> | undefined;

  constructor(options: { readonly serverUrl: string; readonly apiKey: string | undefined }) {
    this.#serverUrl = options.serverUrl;
    this.#apiKey = options.apiKey;
    this.#connection = this.#connect();
  }

  /** Resolves when the client has left. */
  async run(): Promise<void> {
    this.#client.onmessage = (message) => void this.#forward(message);
    process.stdin.once('end', () => void this.#finish());
    await this.#client.start();
    await this.#closed.promise;
  }

  async close(): Promise<void> {
    await this.#connection.end();
    await this.#client.close();
    this.#closed.resolve();
  }

  /** Standard input has ended: waits for the pending answers, then closes. */
  async #finish(): Promise<void> {
    const deadline = performance.now() + ANSWER_TIMEOUT_MS;
    while (this.#pending.size > 0 && performance.now() < deadline) await delay(POLL_MS);
    await this.close();
  }

  async #forward(message: JSONRPCMessage): Promise<void> {
    const id = isJSONRPCRequest(message) ? message.id : undefined;
    if (id !== undefined) this.#pending.add(id);
    try {
      await this.#reopening;
      if (isInitializeRequest(message)) {
        this.#initialize = message;
        this.#opened = this.#send(message);
      } else {
        // The initialize request is answered with the reason of a failure.
        await this.#opened.catch(() => undefined);
        await this.#send(message);
        return;
      }
      await this.#opened;
    } catch (error) {
      if (id !== undefined) await this.#fail(id, explainFailure(error, this.#serverUrl));
    }
  }

  async #send(message: JSONRPCMessage): Promise<void> {
    const connection = this.#connection;
    try {
      await connection.send(message);
    } catch (error) {
      if (!isSessionLost(error) || isInitializedNotification(message)) throw error;
      await this.#reopen(connection);
      await this.#connection.send(message);
    }
  }

  /** Several messages may notice the lost session at once; the first one opens the new session. */
  async #reopen(lost: ServerConnection): Promise<void> {
    if (this.#connection === lost) {
      const initialize = this.#initialize;
      if (initialize === undefined) return;
      await lost.close();
      this.#connection = this.#connect();
      this.#reopening = this.#connection.initialize(initialize).finally(() => (this.#reopening = undefined));
    }
    await this.#reopening;
  }

  #connect(): ServerConnection {
    return new ServerConnection(
      { serverUrl: this.#serverUrl, apiKey: this.#apiKey },
      {
        onMessage: (message) => {
          if ('id' in message && message.id !== undefined && !('method' in message))
            this.#pending.delete(message.id);
          void this.#client.send(message);
        },
        onLost: (error) => void this.#failAll(explainFailure(error, this.#serverUrl)),
      },
    );
  }

  async #failAll(reason: string): Promise<void> {
    await Promise.all([...this.#pending].map((id) => this.#fail(id, reason)));
  }

  async #fail(id: RequestId, message: string): Promise<void> {
    if (!this.#pending.delete(id)) return;
    await this.#client.send({ jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message } });
  }
}

/** The server does not know the session, as after its restart or a long pause. */
function isSessionLost(error: unknown): boolean {
  return error instanceof StreamableHTTPError && error.code === NOT_FOUND;
}

/** The message for the user of an AI tool when a request could not be delivered. */
function explainFailure(error: unknown, serverUrl: string): string {
  if (
    error instanceof UnauthorizedError ||
    (error instanceof StreamableHTTPError && error.code === UNAUTHORIZED)
  ) {
    return 'Authentication required: set SVC_API_KEY to a key, which `svc server keygen --quiet` prints';
  }
  if (error instanceof StreamableHTTPError) return `the server at ${serverUrl} refused: ${error.message}`;
  const message = error instanceof Error ? error.message : String(error);
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `no server answers at ${serverUrl}: ${message}${cause}; start one with \`svc server start\``;
}
