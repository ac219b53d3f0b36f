import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { writeLeaf, type Issuer } from './certificate.ts';
import { readIssuer, type AuthorityPem } from './installation-authority.ts';

export interface LeafOptions {
  readonly authority: AuthorityPem;
  readonly validityHours: number;
  /** Capacity of the cache; the least recently used host is evicted. */
  readonly capacity: number;
}

const HOUR_MS = 3_600_000;
/** Tolerance for clock differences between sandboxes and the host. */
const CLOCKS_DIFFER_MS = HOUR_MS;

interface Kept {
  readonly context: SecureContext;
  /** After this time a new one is made. */
  readonly staleAt: number;
}

/** Cache of the certificates that we present in place of servers: one per host, made on first use. */
export class LeafCertificates {
  readonly #issuer: Issuer;
  readonly #chain: string;
  readonly #options: LeafOptions;
  /** One key for all, generated at the start of the process: it proves no more than the issuer's name does. */
  readonly #key: KeyObject = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  readonly #keyPem = this.#key.export({ type: 'pkcs8', format: 'pem' });
  readonly #kept = new Map<string, Kept>();

  constructor(options: LeafOptions) {
    this.#options = options;
    this.#issuer = readIssuer(options.authority);
    const { subject, issuer } = this.#issuer.certificate;
    // Includes our own certificate: clients that trust only the authority above it need it in the chain.
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
    // Moves it to the end of the map: most recently used.
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
