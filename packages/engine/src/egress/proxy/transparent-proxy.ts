import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { clientOf } from '../../policy/client-address.ts';
import { readFirstFlight, type FirstFlight } from './first-flight.ts';
import { judge, nameSaid, type Judgement } from './judge.ts';
import type { Destination, Refusal, RefusalReason, SandboxEgress, SeenConnection } from './sandbox-egress.ts';
import { endTogether, reset } from './end-together.ts';

export interface ProxyLimits {
  /** For all sandboxes together. */
  readonly maxConnections: number;
  /** After this time without a byte of the client the server may speak first. */
  readonly silenceMs: number;
  /** The timeout for the first message of a client that has begun, or has to begin. */
  readonly firstFlightMs: number;
  readonly connectMs: number;
}

export const PROXY_LIMITS: ProxyLimits = {
  maxConnections: 8192,
  silenceMs: 300,
  firstFlightMs: 10_000,
  connectMs: 30_000,
};

const HTTP_PORT = 80;
const KEEP_ALIVE_MS = 60_000;

export interface ProxyOptions {
  /** The sandbox with an address; undefined for an unknown one, whose connections are refused. */
  readonly find: (sandbox: string) => SandboxEgress | undefined;
  readonly onRefusal: (refusal: Refusal) => void;
  /** Called when a connection was allowed. */
  readonly onPassed?: (passed: SeenConnection) => void;
  readonly limits?: ProxyLimits;
}

interface Connection {
  readonly client: Socket;
  readonly sandbox: string;
  readonly destination: Destination;
  readonly egress: SandboxEgress;
  readonly refuse: (reason: RefusalReason, flight?: FirstFlight) => void;
}

/** A decision about a connection, and its inputs. */
interface Judged {
  readonly destination: Destination;
  readonly flight: FirstFlight | null;
  readonly judgement: Judgement;
}

/**
 * Accepts connections that sandboxes opened to other hosts, decides by their first bytes whether they are allowed, and forwards them.
 * Nothing reaches the destination before the decision, not even an empty connection.
 */
export class TransparentProxy {
  readonly #options: ProxyOptions;
  readonly #limits: ProxyLimits;
  readonly #slots: ConnectionSlots;
  readonly #open = new Map<string, Map<Socket, Judged | null>>();

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#limits = options.limits ?? PROXY_LIMITS;
    this.#slots = new ConnectionSlots(this.#limits.maxConnections);
  }

  /** `client` must be paused, and stay open when its peer has sent everything (`allowHalfOpen`). */
  accept(client: Socket, destination: Destination): void {
    client.on('error', () => undefined); // `close` follows.
    const sandbox = clientOf(client.remoteAddress ?? '');
    const egress = this.#options.find(sandbox);
    const refuse = (reason: RefusalReason, flight?: FirstFlight) => {
      this.#options.onRefusal({ ...seen(sandbox, destination, flight ?? null), reason });
      reset(client);
    };
    if (egress === undefined) return refuse('policy');
    if (!this.#slots.take(sandbox, egress.maxConnections)) return refuse('too_many_connections');
    this.#remember(sandbox, client);
    client.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
    void this.#serve({ client, sandbox, destination, egress, refuse });
  }

  /** Ends all connections of a sandbox that is gone, or whose settings changed. */
  forget(sandbox: string): void {
    for (const client of this.#open.get(sandbox)?.keys() ?? []) reset(client);
  }

  /** After a change of rules: ends the connections of a sandbox that the new rules judge differently. */
  rejudge(sandbox: string): void {
    const egress = this.#options.find(sandbox);
    for (const [client, judged] of this.#open.get(sandbox) ?? []) {
      // A connection without a decision is judged by the new rules later.
      if (judged === null) continue;
      const { destination, flight, judgement } = judged;
      if (egress === undefined || judge(egress, destination, flight) !== judgement) reset(client);
    }
  }

  #remember(sandbox: string, client: Socket): void {
    const open = this.#open.get(sandbox) ?? new Map<Socket, Judged | null>();
    this.#open.set(sandbox, open.set(client, null));
    client.once('close', () => {
      this.#slots.giveBack(sandbox);
      open.delete(client);
      if (open.size === 0) this.#open.delete(sandbox);
    });
  }

  #note({ client, sandbox }: Connection, judged: Judged): void {
    const open = this.#open.get(sandbox);
    if (open?.has(client) === true) open.set(client, judged);
    const { destination, flight, judgement } = judged;
    if (judgement === 'carry' || judgement === 'read')
      this.#options.onPassed?.(seen(sandbox, destination, flight));
  }

  async #serve(connection: Connection): Promise<void> {
    const { client, destination, egress, refuse } = connection;
    const { firstFlightMs } = this.#limits;
    const silenceMs = this.#silenceMs(connection);
    const flight = readFirstFlight(client);
    const mustSpeak = egress.interceptedPorts.has(destination.port);
    const early = mustSpeak ? null : await within(flight, silenceMs);
    const isSilent = early?.kind === 'ended' || (early === null && client.bytesRead === 0);
    if (isSilent && !mustSpeak && !client.destroyed) return this.#letServerSpeak(connection, flight);
    const first = early ?? (await within(flight, firstFlightMs));
    if (first === null) return refuse('not_readable');
    if (first.kind === 'ended') return reset(client);
    const judgement = judge(egress, destination, first);
    this.#note(connection, { destination, flight: first, judgement });
    if (judgement === 'carry') this.#carry(client, destination, client);
    else if (judgement === 'read') this.#read(connection, first);
    else refuse(judgement, first);
  }

  /** On the HTTP port the client speaks first. Where requests are read it is waited for, because that is impossible after the server spoke. */
  #silenceMs({ egress, destination }: Connection): number {
    const isRead = egress.readsPlainHttp && destination.port === HTTP_PORT;
    return isRead ? this.#limits.firstFlightMs : this.#limits.silenceMs;
  }

  /**
   * Connects a silent client, because some servers speak first. The client's bytes are still held until they are judged like any others:
   * silence must not circumvent the rules.
   */
  async #letServerSpeak(connection: Connection, flight: Promise<FirstFlight>): Promise<void> {
    const { client, destination, egress, refuse } = connection;
    const silent = judge(egress, destination, null);
    if (silent !== 'carry') return refuse(silent === 'read' ? 'not_readable' : silent);
    this.#note(connection, { destination, flight: null, judgement: silent });
    const upstream = this.#carry(client, destination, null);
    const first = await flight;
    if (first.kind === 'ended') {
      upstream.end();
      return;
    }
    const judgement = judge(egress, destination, first);
    this.#note(connection, { destination, flight: first, judgement });
    if (judgement === 'carry') client.pipe(upstream);
    else refuse(judgement === 'read' ? 'not_readable' : judgement, first);
  }

  /** Connects the client to its destination and pipes its bytes, unless they are still to be judged. */
  #carry(client: Socket, { address, port }: Destination, source: Socket | null): Socket {
    const upstream = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
    upstream.setTimeout(this.#limits.connectMs, () => reset(upstream));
    upstream.once('connect', () => upstream.setTimeout(0).setKeepAlive(true, KEEP_ALIVE_MS));
    endTogether(client, upstream);
    source?.pipe(upstream);
    upstream.pipe(client);
    return upstream;
  }

  #read({ client, destination, egress }: Connection, flight: FirstFlight): void {
    if (flight.kind !== 'tls' && flight.kind !== 'http')
      throw new Error(`The proxy cannot read ${flight.kind}`);
    egress.intercept({ client, destination, flight, rules: egress.rules });
  }
}

/** Null after the timeout. */
async function within(flight: Promise<FirstFlight>, timeoutMs: number): Promise<FirstFlight | null> {
  const over = new AbortController();
  try {
    return await Promise.race([flight, delay(timeoutMs, null, { signal: over.signal })]);
  } finally {
    over.abort();
  }
}

function seen(sandbox: string, destination: Destination, flight: FirstFlight | null): SeenConnection {
  const speaks = flight?.kind === 'tls' || flight?.kind === 'http' ? flight.kind : 'tcp';
  return { sandbox, destination, speaks, name: nameSaid(flight) ?? null };
}

/** Limits the open connections of each sandbox and of all together. */
class ConnectionSlots {
  readonly #maxTotal: number;
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(maxTotal: number) {
    this.#maxTotal = maxTotal;
  }

  get total(): number {
    return this.#total;
  }

  /** False when the sandbox, or this process, is at its limit. A taken slot is given back exactly once. */
  take(sandbox: string, max: number): boolean {
    const taken = this.#taken.get(sandbox) ?? 0;
    if (taken >= max || this.#total >= this.#maxTotal) return false;
    this.#taken.set(sandbox, taken + 1);
    this.#total += 1;
    return true;
  }

  giveBack(sandbox: string): void {
    const left = (this.#taken.get(sandbox) ?? 1) - 1;
    if (left === 0) this.#taken.delete(sandbox);
    else this.#taken.set(sandbox, left);
    this.#total -= 1;
  }
}
