import { randomInt } from 'node:crypto';
import { readAnswer, type ReadAnswer } from './dns-answer.ts';
import { RCODE, readQuery, writeError, writeQuery, writeTruncated, type DnsQuery } from './dns-query.ts';
import { exchange, type Transport } from './dns-upstream.ts';
import type { Resolvers } from './resolvers.ts';

export interface ForwarderLimits {
  /** For each resolver; the next one is asked only when this one did not answer. */
  readonly timeoutMs: number;
  /** Shared by all, beyond the few that each client has of its own. */
  readonly maxPending: number;
  readonly maxPendingPerClient: number;
}

export const FORWARDER_LIMITS: ForwarderLimits = {
  timeoutMs: 5000,
  maxPending: 512,
  maxPendingPerClient: 64,
};

/** A client may hold this part of what is free. */
const SHARES = 4;
const LEAST_SHARE = 4;

/**
 * Answers what sandboxes ask, with the help of the resolvers. Clients are told apart by their address, which the
 * packet filter vouches for. Names that lead to addresses that are not public do not exist.
 */
export class DnsForwarder {
  readonly #resolvers: Resolvers;
  readonly #limits: ForwarderLimits;
  readonly #pending = new Map<string, number>();
  #pendingTotal = 0;

  constructor(resolvers: Resolvers, limits: ForwarderLimits = FORWARDER_LIMITS) {
    this.#resolvers = resolvers;
    this.#limits = limits;
  }

  /** The message to send back; null when none is. Never rejects. */
  async answer(message: Buffer, client: string, transport: Transport): Promise<Buffer | null> {
    const read = readQuery(message);
    if (read.kind === 'ignore') return null;
    if (read.kind === 'reply') return read.bytes;
    const { query } = read;
    if (!this.#enter(client)) return writeError(query, RCODE.serverFailure);
    try {
      return reply(query, await this.#ask(query, transport), transport);
    } finally {
      this.#leave(client);
    }
  }

  async #ask(query: DnsQuery, transport: Transport): Promise<ReadAnswer | null> {
    for (const resolver of this.#resolvers.current()) {
      const id = randomInt(0x10000);
      try {
        return await exchange(
          transport,
          resolver,
          writeQuery(query, id),
          this.#limits.timeoutMs,
          (message) => {
            const read = readAnswer(message, query, id);
            return read.kind === 'foreign' ? null : read;
          },
        );
      } catch {
        // Silent or unreachable: the next resolver may know, and when none does the client is told so.
      }
    }
    return null;
  }

  #enter(client: string): boolean {
    const pending = this.#pending.get(client) ?? 0;
    const free = this.#limits.maxPending - this.#pendingTotal;
    // The fuller it gets, the less one client may hold. A few are everybody's own, also when many that ask for names nobody answers
    // have taken all the rest; as there are no more clients than sandboxes, that is bounded too.
    const share = Math.max(LEAST_SHARE, Math.floor(free / SHARES));
    if (pending >= Math.min(this.#limits.maxPendingPerClient, share)) return false;
    this.#pending.set(client, pending + 1);
    this.#pendingTotal += 1;
    return true;
  }

  #leave(client: string): void {
    const pending = (this.#pending.get(client) ?? 1) - 1;
    if (pending === 0) this.#pending.delete(client);
    else this.#pending.set(client, pending);
    this.#pendingTotal -= 1;
  }
}

function reply(query: DnsQuery, read: ReadAnswer | null, transport: Transport): Buffer {
  if (read?.kind === 'notPublic') return writeError(query, RCODE.noSuchName);
  if (read?.kind === 'truncated' && transport === 'udp') return writeTruncated(query);
  if (read?.kind !== 'answer') return writeError(query, RCODE.serverFailure);
  return transport === 'udp' && read.bytes.length > query.maxUdpBytes ? writeTruncated(query) : read.bytes;
}
