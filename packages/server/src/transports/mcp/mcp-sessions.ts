import { randomUUID } from 'node:crypto';
import { WebStandardStreamableHTTPServerTransport as HttpTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { PlatformError } from '@svc/contract';
import { ownerOfCaller, type Owner } from '../../access/call-shares.ts';
import type { Caller } from '../../access/caller.ts';
import { createMcpServer, type McpServerParts } from './create-mcp-server.ts';
import { EventLog } from './event-log.ts';
import { negotiateVersion } from './protocol-version.ts';

/** How soon a client whose stream has ended comes back. */
const RETRY_MS = 500;

export interface SessionLimits {
  readonly maxSessions: number;
  /** A session that nobody has used for this long is forgotten; its client then starts another. */
  readonly idleMs: number;
}

export const DEFAULT_SESSION_LIMITS: SessionLimits = { maxSessions: 1000, idleMs: 30 * 60_000 };

/** One client, from `initialize` on. */
export interface McpSession {
  readonly transport: HttpTransport;
  readonly caller: Caller;
  /** Undefined when the first message was not `initialize`. */
  readonly protocolVersion: string | undefined;
  /** HTTP requests that are being answered, open streams among them. */
  openRequests: number;
  lastUsedAt: number;
}

/** The MCP sessions of all clients. They live in memory: after a restart of the server, clients start new ones. */
export class McpSessions {
  readonly #sessions = new Map<string, McpSession>();
  readonly #parts: McpServerParts;
  readonly #limits: SessionLimits;
  readonly #sweep: NodeJS.Timeout;

  constructor(parts: McpServerParts, limits: SessionLimits) {
    this.#parts = parts;
    this.#limits = limits;
    this.#sweep = setInterval(() => this.#forgetIdle(), Math.max(1, limits.idleMs / 10)).unref();
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** @returns undefined when there is none, or when it belongs to somebody else. */
  find(sessionId: string, caller: Caller): McpSession | undefined {
    const session = this.#sessions.get(sessionId);
    return session?.caller.namespace === caller.namespace ? session : undefined;
  }

  /** Counts as a session, and can be found, once its first message was `initialize`. */
  async open(caller: Caller, firstMessage: unknown): Promise<McpSession> {
    this.#makeRoom(ownerOfCaller(caller));
    const transport = new HttpTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new EventLog(),
      retryInterval: RETRY_MS,
      onsessioninitialized: (id) => void this.#sessions.set(id, session),
    });
    const protocolVersion = negotiateVersion(firstMessage);
    const session: McpSession = {
      transport,
      caller,
      protocolVersion,
      openRequests: 0,
      lastUsedAt: Date.now(),
    };
    transport.onclose = () => void this.#sessions.delete(transport.sessionId ?? '');
    await createMcpServer(this.#parts).connect(transport);
    return session;
  }

  /** Around every request, so that a session with an open stream is not idle. @returns to be called at its end */
  use(session: McpSession): () => void {
    session.openRequests += 1;
    return () => {
      session.openRequests -= 1;
      session.lastUsedAt = Date.now();
      // A first message that was not `initialize` has been refused.
      if (session.transport.sessionId === undefined) void session.transport.close();
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep);
    await Promise.all([...this.#sessions.values()].map(({ transport }) => transport.close()));
  }

  #forgetIdle(): void {
    const oldest = Date.now() - this.#limits.idleMs;
    for (const { transport, openRequests, lastUsedAt } of this.#sessions.values()) {
      if (openRequests === 0 && lastUsedAt <= oldest) void transport.close();
    }
  }

  /**
   * Whoever has as many sessions as are free gives up the one of its own that was idle longest, as in `CallShares`; so does
   * whoever has the most, when all are taken. Nobody else's makes room for a flood.
   */
  #makeRoom(owner: Owner): void {
    const own = this.#ofOwner(owner);
    const free = this.#limits.maxSessions - this.#sessions.size;
    if (free > 0 && (own.length === 0 || owner === null || own.length < free)) return;
    const most = own.length > 0 ? own : this.#ofBusiest();
    const idle = most.filter(({ openRequests }) => openRequests === 0);
    const [oldest] = idle.toSorted((a, b) => a.lastUsedAt - b.lastUsedAt);
    if (oldest === undefined)
      throw new PlatformError('unavailable', 'too many MCP sessions are open; try again later');
    void oldest.transport.close();
  }

  #ofOwner(owner: Owner): readonly McpSession[] {
    return this.#sessions
      .values()
      .filter(({ caller }) => ownerOfCaller(caller) === owner)
      .toArray();
  }

  #ofBusiest(): readonly McpSession[] {
    const byOwner = Map.groupBy(this.#sessions.values(), ({ caller }) => ownerOfCaller(caller));
    return [...byOwner.values()].toSorted((a, b) => b.length - a.length)[0] ?? [];
  }
}
