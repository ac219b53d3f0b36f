import { randomInt } from 'node:crypto';
import { decideName, mayAnswer } from '../policy/decide.ts';
import { mayAsk } from '../policy/nameservers.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { ClientPolicies } from './client-policies.ts';
import { readAnswer, type ReadAnswer } from './dns-answer.ts';
import { RCODE, readQuery, writeError, writeQuery, writeTruncated, type DnsQuery } from './dns-query.ts';
import { exchange, type Transport } from './dns-upstream.ts';
import type { Pin } from './egress-messages.ts';
import { QuerySemaphore, QUERY_LIMITS, type QueryLimits } from './query-semaphore.ts';
import type { Resolvers } from './resolvers.ts';
import type { DecisionReports } from './decision-reports.ts';

export interface ForwarderParts {
  /** Resolvers of this host, for sandboxes without their own. */
  readonly resolvers: Resolvers;
  readonly clients: ClientPolicies;
  /** Resolves when the packet filter lets the client reach the addresses in the answer; rejects when it cannot. */
  readonly pin: (client: string, pins: readonly Pin[]) => Promise<void>;
  /** Called with each decision. */
  readonly reports?: Pick<DecisionReports, 'allowed' | 'denied'>;
  readonly limits?: QueryLimits;
  /** The scope of a client's sandbox; unless given, each client has its own. */
  readonly scopeOf?: (client: string) => string;
}

/** Grace period: a client may use an address until its record expires, and then needs a moment to connect. */
const PIN_GRACE_SECONDS = 30;
const MAX_PIN_SECONDS = 24 * 3600;

/**
 * Answers the DNS queries of sandboxes through the resolvers. A client is identified by its source address, which the packet filter
 * guarantees. Names that the client's policy denies, and names that resolve to forbidden addresses, are answered with NXDOMAIN.
 */
export class DnsForwarder {
  readonly #parts: ForwarderParts;
  readonly #pending: QuerySemaphore;

  constructor(parts: ForwarderParts) {
    this.#parts = parts;
    const { limits = QUERY_LIMITS, scopeOf = (client) => client } = parts;
    this.#pending = new QuerySemaphore(limits, scopeOf);
  }

  /** Cancels the queries of a removed sandbox. */
  forget(client: string): void {
    this.#pending.forget(client);
  }

  /** The response; null when none is sent. Never rejects. */
  async answer(message: Buffer, client: string, transport: Transport): Promise<Buffer | null> {
    const read = readQuery(message);
    if (read.kind === 'ignore') return null;
    if (read.kind === 'reply') return read.bytes;
    const { query } = read;
    const policy = this.#parts.clients.policyOf(client);
    const { action, rule } = decideName(policy, query.name, transport);
    const asked = { kind: 'dns', host: query.name, address: null, port: null, protocol: transport } as const;
    if (action === 'deny') {
      this.#parts.reports?.denied(client, { ...asked, verdict: 'deny', decidedBy: 'name', rule });
      return writeError(query, RCODE.noSuchName);
    }
    using pending = this.#pending.tryAcquire(client);
    if (pending === null) return writeError(query, RCODE.serverFailure);
    const found = await this.#ask(query, policy, transport, pending.signal);
    // The sandbox is gone; the next one with its address did not ask.
    if (pending.signal.aborted) return null;
    if (found?.kind === 'hidden')
      this.#parts.reports?.denied(client, {
        ...asked,
        verdict: 'deny',
        decidedBy: 'rebind_protection',
        rule: null,
      });
    if (found?.kind === 'answer')
      this.#parts.reports?.allowed(client, { ...asked, verdict: 'allow', decidedBy: 'name', rule });
    const isUsable = await this.#pinned(query, client, found);
    return pending.signal.aborted ? null : reply(query, isUsable ? found : null, transport);
  }

  async #ask(
    query: DnsQuery,
    policy: ResolvedPolicy,
    transport: Transport,
    signal: AbortSignal,
  ): Promise<ReadAnswer | null> {
    const { nameservers, queryTimeoutMs } = policy.dns;
    const { clients, resolvers } = this.#parts;
    // Evaluated for each query: the class of an address changes with the networks of the host.
    const allowed = nameservers.filter((own) => mayAsk(policy, own, transport, clients.hostNetworks));
    for (const resolver of nameservers.length > 0 ? allowed : resolvers.current()) {
      const id = randomInt(0x10000);
      try {
        const until = { timeoutMs: queryTimeoutMs, signal };
        return await exchange(transport, resolver, writeQuery(query, id), until, (message) => {
          const read = readAnswer(message, query, id, (address) =>
            mayAnswer(policy, address, clients.hostNetworks),
          );
          return read.kind === 'foreign' ? null : read;
        });
      } catch {
        if (signal.aborted) return null;
        // Timeout or unreachable: the next resolver is asked; when all fail the client gets SERVFAIL.
      }
    }
    return null;
  }

  /** Whether the client can reach the answered addresses: rules about the name must include them before the answer is sent. */
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
}

function reply(query: DnsQuery, read: ReadAnswer | null, transport: Transport): Buffer {
  if (read?.kind === 'hidden') return writeError(query, RCODE.noSuchName);
  if (read?.kind === 'truncated' && transport === 'udp') return writeTruncated(query);
  if (read?.kind !== 'answer') return writeError(query, RCODE.serverFailure);
  return transport === 'udp' && read.bytes.length > query.maxUdpBytes ? writeTruncated(query) : read.bytes;
}
