import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InitializeResultSchema, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';

const END_TIMEOUT_MS = 2000;
/** The request id for a session that this program opens itself, apart from the ids of clients. */
const OWN_ID = 'svc-mcp-session';

export interface ServerConnectionEvents {
  readonly onMessage: (message: JSONRPCMessage) => void;
  /** The connection was lost, and pending answers with it. */
  readonly onLost: (error: Error) => void;
}

/** One session with a server over Streamable HTTP. */
export class ServerConnection {
  readonly #transport: StreamableHTTPClientTransport;
  readonly #started: Promise<void>;
  readonly #events: ServerConnectionEvents;
  #initialized: PromiseWithResolvers<void> | undefined;

  constructor(
    { serverUrl, apiKey }: { readonly serverUrl: string; readonly apiKey: string | undefined },
    events: ServerConnectionEvents,
  ) {
    const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    this.#transport = new StreamableHTTPClientTransport(new URL(`${serverUrl}/mcp`), {
      requestInit: { headers },
    });
    this.#events = events;
    this.#transport.onmessage = (message) => this.#receive(message);
    this.#transport.onerror = (error) => {
      if (error.message.startsWith('Maximum reconnection attempts')) events.onLost(error);
    };
    this.#started = this.#transport.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    await this.#started;
    await this.#transport.send(message);
  }

  /** Opens a session with the client's own initialize message; the client has had its answer already. */
  async initialize(request: JSONRPCMessage): Promise<void> {
    this.#initialized = Promise.withResolvers<void>();
    await this.send({ ...request, id: OWN_ID });
    await this.#initialized.promise;
    await this.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  }

  /** Tells the server that the session is over. */
  async end(): Promise<void> {
    const timer = AbortSignal.timeout(END_TIMEOUT_MS);
    const gaveUp = new Promise((resolve) => timer.addEventListener('abort', resolve, { once: true }));
    // A server that is gone has dropped the session anyway.
    await Promise.race([this.#transport.terminateSession().catch(() => undefined), gaveUp]);
    await this.close();
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  #receive(message: JSONRPCMessage): void {
    const version = 'result' in message ? InitializeResultSchema.safeParse(message.result) : undefined;
    if (version?.success === true) this.#transport.setProtocolVersion(version.data.protocolVersion);
    if (this.#initialized !== undefined && 'id' in message && message.id === OWN_ID) {
      if ('error' in message) this.#initialized.reject(new Error(message.error.message));
      else this.#initialized.resolve();
      return;
    }
    this.#events.onMessage(message);
  }
}
