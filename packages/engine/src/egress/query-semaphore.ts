export interface QueryLimits {
  /** Shared by all scopes, beyond the reserve of each scope. */
  readonly maxPending: number;
  readonly maxPendingPerClient: number;
}

export const QUERY_LIMITS: QueryLimits = {
  maxPending: 1024,
  maxPendingPerClient: 64,
};

/** Divisor of the free places for one client. */
const CLIENT_SHARES = 4;
/** Divisor for all clients of one scope together. */
const SCOPE_SHARES = 2;
/** Reserve of each client, within the limit of its scope. */
const LEAST_OF_CLIENT = 4;
/** Reserve of each scope, even when all free places are taken. */
const LEAST_OF_SCOPE = 64;

interface Client {
  readonly scope: string;
  readonly gone: AbortController;
  pending: number;
}

/** A query in progress, until it is disposed of. */
export interface QueryPermit extends Disposable {
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
}

/**
 * A semaphore for queries in progress that is fair between clients and scopes: the fuller it is, the fewer places one client, and all
 * clients of one scope, may hold. Each query takes memory and a socket to a resolver.
 */
export class QuerySemaphore {
  readonly #limits: QueryLimits;
  readonly #scopeOf: (client: string) => string;
  readonly #clients = new Map<string, Client>();
  readonly #scopes = new Map<string, number>();
  #total = 0;

  constructor(limits: QueryLimits, scopeOf: (client: string) => string) {
    this.#limits = limits;
    this.#scopeOf = scopeOf;
  }

  get total(): number {
    return this.#total;
  }

  /** Null when the client, or its scope, is at its limit. */
  tryAcquire(name: string): QueryPermit | null {
    const client = this.#clients.get(name) ?? {
      scope: this.#scopeOf(name),
      gone: new AbortController(),
      pending: 0,
    };
    if (!this.#mayBegin(client)) return null;
    this.#clients.set(name, client);
    this.#count(client, 1);
    let isOver = false;
    return {
      signal: client.gone.signal,
      [Symbol.dispose]: () => {
        if (isOver) return;
        isOver = true;
        this.#count(client, -1);
        if (client.pending === 0 && this.#clients.get(name) === client) this.#clients.delete(name);
      },
    };
  }

  /** Cancels the queries of a client that is gone; the next client with its address is another one. */
  forget(name: string): void {
    const client = this.#clients.get(name);
    this.#clients.delete(name);
    client?.gone.abort();
  }

  #mayBegin({ scope, pending }: Client): boolean {
    const free = this.#limits.maxPending - this.#total;
    const ofClient = Math.max(LEAST_OF_CLIENT, Math.floor(free / CLIENT_SHARES));
    const ofScope = Math.max(LEAST_OF_SCOPE, Math.floor(free / SCOPE_SHARES));
    return (
      pending < Math.min(this.#limits.maxPendingPerClient, ofClient) &&
      (this.#scopes.get(scope) ?? 0) < ofScope
    );
  }

  #count(client: Client, change: 1 | -1): void {
    client.pending += change;
    this.#total += change;
    const left = (this.#scopes.get(client.scope) ?? 0) + change;
    if (left === 0) this.#scopes.delete(client.scope);
    else this.#scopes.set(client.scope, left);
  }
}
