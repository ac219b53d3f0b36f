import { randomInt } from 'node:crypto';
import { decideName, mayAnswer } from '../policy/decide.ts';
import { mayAsk } from '../policy/nameservers.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { ClientPolicies } from './client-policies.ts';
import { readAnswer, type ReadAnswer } from './dns-answer.ts';
import { RCODE, readQuery, writeError, writeQuery, writeTruncated, type DnsQuery } from './dns-query.ts';
import { exchange, type Transport } from './dns-upstream.ts';
import type { Pin } from './egress-messages.ts';
import type { Resolvers } from './resolvers.ts';
import type { ToldDecisions } from './told-decisions.ts';

export interface ForwarderLimits {
  /** Shared by all, beyond the few that each client has of its own. */
  readonly maxPending: number;
  readonly maxPendingPerClient: number;
}

export const FORWARDER_LIMITS: ForwarderLimits = {
  maxPending: 512,
  maxPendingPerClient: 64,
};

export interface ForwarderParts {
  /** Those of this host, for sandboxes that name none of their own. */
  readonly resolvers: Resolvers;
  readonly clients: ClientPolicies;
  /** Returns when the packet filter lets the client reach what it is about to be told of; rejects when that cannot be. */
  readonly pin: (client: string, pins: readonly Pin[]) => Promise<void>;
  /** Hears what was decided. */
  readonly told?: Pick<ToldDecisions, 'allowed' | 'denied'>;
  readonly limits?: ForwarderLimits;
}

/** A client may use an address until its record expires, and then needs a moment to connect. */
const PIN_GRACE_SECONDS = 30;
const MAX_PIN_SECONDS = 24 * 3600;

/** A client may hold this part of what is free. */
const SHARES = 4;
const LEAST_SHARE = 4;

/**
 * Answers what sandboxes ask, with the help of the resolvers. Clients are told apart by their address, which the
 * packet filter vouches for. Names that a client's policy denies, and those that lead where it must not be led, do not exist.
 */
export class DnsForwarder {
  readonly #parts: ForwarderParts;
  readonly #limits: ForwarderLimits;
  readonly #pending = new Map<string, number>();
  #pendingTotal = 0;

  constructor(parts: ForwarderParts) {
    this.#parts = parts;
    this.#limits = parts.limits ?? FORWARDER_LIMITS;
  }

  /** The message to send back; null when none is. Never rejects. */
  async answer(message: Buffer, client: string, transport: Transport): Promise<Buffer | null> {
    const read = readQuery(message);
    if (read.kind === 'ignore') return null;
    if (read.kind === 'reply') return read.bytes;
    const { query } = read;
    const policy = this.#parts.clients.policyOf(client);
    const { action, rule } = decideName(policy, query.name, transport);
    const asked = { kind: 'dns', host: query.name, address: null, port: null, protocol: transport } as const;
    if (action === 'deny') {
      this.#parts.told?.denied(client, { ...asked, verdict: 'deny', decidedBy: 'name', rule });
      return writeError(query, RCODE.noSuchName);
    }
    if (!this.#enter(client)) return writeError(query, RCODE.serverFailure);
    try {
      const found = await this.#ask(query, policy, transport);
      if (found?.kind === 'hidden')
        this.#parts.told?.denied(client, {
          ...asked,
          verdict: 'deny',
          decidedBy: 'rebind_protection',
          rule: null,
        });
      if (found?.kind === 'answer')
        this.#parts.told?.allowed(client, { ...asked, verdict: 'allow', decidedBy: 'name', rule });
      return reply(query, (await this.#pinned(query, client, found)) ? found : null, transport);
    } finally {
      this.#leave(client);
    }
  }

  async #ask(query: DnsQuery, policy: ResolvedPolicy, transport: Transport): Promise<ReadAnswer | null> {
    const { nameservers, queryTimeoutMs } = policy.dns;
    const { clients, resolvers } = this.#parts;
    // Judged at each question: what an address is changes with the networks of the host.
    const allowed = nameservers.filter((own) => mayAsk(policy, own, transport, clients.surroundings));
    for (const resolver of nameservers.length > 0 ? allowed : resolvers.current()) {
      const id = randomInt(0x10000);
      try {
        return await exchange(transport, resolver, writeQuery(query, id), queryTimeoutMs, (message) => {
          const read = readAnswer(message, query, id, (address) =>
            mayAnswer(policy, address, clients.surroundings),
          );
          return read.kind === 'foreign' ? null : read;
        });
      } catch {
        // Silent or unreachable: the next resolver may know, and when none does the client is told so.
      }
    }
    return null;
  }

  /** Whether the client can use what it was answered: rules about the name must have heard of the addresses first. */
  async #pinned(query: DnsQuery, client: string, found: ReadAnswer | null): Promise<boolean> {
    if (found?.kind !== 'answer' || found.addresses.length === 0) return true;
    const pins = this.#parts.clients.remember(
      client,
      found.addresses.map(({ address, ttlSeconds }) => ({
        name: query.name,
        address,
        seconds: Math.min(ttlSeconds, MAX_PIN_SECONDS) + PIN_GRACE_SECONDS,
      })),
    );
    if (pins.length === 0) return true;
    return await this.#parts.pin(client, pins).then(
      () => true,
      () => false,
    );
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
  if (read?.kind === 'hidden') return writeError(query, RCODE.noSuchName);
  if (read?.kind === 'truncated' && transport === 'udp') return writeTruncated(query);
  if (read?.kind !== 'answer') return writeError(query, RCODE.serverFailure);
  return transport === 'udp' && read.bytes.length > query.maxUdpBytes ? writeTruncated(query) : read.bytes;
}
