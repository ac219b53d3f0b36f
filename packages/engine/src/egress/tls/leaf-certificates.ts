import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { writeLeaf, type Issuer } from './certificate.ts';
import { readIssuer, type AuthorityPem } from './installation-authority.ts';

export interface LeafOptions {
  readonly authority: AuthorityPem;
  readonly validityHours: number;
  /** How many hosts are remembered; the one that was not asked for the longest goes first. */
  readonly capacity: number;
}

const HOUR_MS = 3_600_000;
/** Clocks of sandboxes and hosts differ. */
const CLOCKS_DIFFER_MS = HOUR_MS;

interface Kept {
  readonly context: SecureContext;
  /** From then on a new one is made. */
  readonly staleAt: number;
}

/** What we show to sandboxes in place of servers: a certificate per host, made when it is first asked for. */
export class LeafCertificates {
  readonly #issuer: Issuer;
  readonly #chain: string;
  readonly #options: LeafOptions;
  /** One key for all, made anew with each process: it proves nothing that the issuer's name does not. */
  readonly #key: KeyObject = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  readonly #keyPem = this.#key.export({ type: 'pkcs8', format: 'pem' });
  readonly #kept = new Map<string, Kept>();

  constructor(options: LeafOptions) {
    this.#options = options;
    this.#issuer = readIssuer(options.authority);
    const { subject, issuer } = this.#issuer.certificate;
    // A client that trusts only the authority above ours needs our certificate to get there.
    this.#chain = subject === issuer ? '' : options.authority.certificate;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** `host` is a name in lower case or an address. */
  contextFor(host: string, now = Date.now()): SecureContext {
    const kept = this.#kept.get(host);
    this.#kept.delete(host);
    const current = kept !== undefined && now < kept.staleAt ? kept : this.#make(host, now);
    // Behind all others: it was asked for last.
    this.#kept.set(host, current);
    if (this.#kept.size > this.#options.capacity) {
      const oldest = this.#kept.keys().next();
      if (oldest.done !== true) this.#kept.delete(oldest.value);
    }
    return current.context;
  }

  #make(host: string, now: number): Kept {
    const validMs = this.#options.validityHours * HOUR_MS;
    const until = Math.min(now + validMs, this.#issuer.certificate.validToDate.getTime());
    const validity = { from: new Date(now - CLOCKS_DIFFER_MS), until: new Date(until) };
    const certificate = writeLeaf(host, this.#key, this.#issuer, validity);
    const context = createSecureContext({ key: this.#keyPem, cert: `${certificate}${this.#chain}` });
    return { context, staleAt: now + validMs / 2 };
  }
}
