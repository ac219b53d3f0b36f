import { randomUUID } from 'node:crypto';
import { WebStandardStreamableHTTPServerTransport as HttpTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { PlatformError } from '@svc/contract';
import { ownerOfCaller, type Owner } from '../../access/fair-limit.ts';
import type { Caller } from '../../access/caller.ts';
import { createMcpServer, type McpServerParts } from './create-mcp-server.ts';
import { EventLog } from './event-log.ts';
import { negotiateVersion } from './protocol-version.ts';

/** How soon a client reconnects after its stream has ended. */
const RETRY_MS = 500;

export interface SessionLimits {
  readonly maxSessions: number;
  /** An unused session is closed after this time; its client then starts another. */
  readonly idleMs: number;
}

export const DEFAULT_SESSION_LIMITS: SessionLimits = { maxSessions: 1000, idleMs: 30 * 60_000 };

/** The session of one client, from `initialize` on. */
export interface McpSession {
  readonly transport: HttpTransport;
  readonly caller: Caller;
  /** Undefined when the first message was not `initialize`. */
  readonly protocolVersion: string | undefined;
  /** Pending HTTP requests, including open streams. */
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

  /** @returns undefined when it does not exist, or belongs to another caller */
  find(sessionId: string, caller: Caller): McpSession | undefined {
    const session = this.#sessions.get(sessionId);
    return session?.caller.namespace === caller.namespace ? session : undefined;
  }

  /** Opens a session. It is counted, and can be found, if its first message is `initialize`. */
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

  /**
   * Marks a session as used during a request, so that an open stream keeps it alive. @returns a function to call at
   * the end of the request
   */
  use(session: McpSession): () => void {
    session.openRequests += 1;
    return () => {
      session.openRequests -= 1;
      session.lastUsedAt = Date.now();
      // Closed here if the first message was not `initialize` and was refused.
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
   * Closes the longest idle session of the owner when it has as many sessions as are still free, as in `FairLimit`.
   * When none are free and the owner has none, closes one of the owner with the most sessions. So an owner that opens
   * many sessions replaces only its own.
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
