import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { matchesHost, parseHostPattern } from '../proxy/host-pattern.ts';

export interface UpstreamTrustOptions {
  readonly verifyUpstream: boolean;
  /** The first matching pattern decides. */
  readonly scopedVerifyUpstream: readonly { readonly pattern: string; readonly verify: boolean }[];
  /** PEM, trusted in addition to the roots of this host. */
  readonly upstreamCas: readonly string[];
  /** PEM, trusted for hosts that match. */
  readonly scopedUpstreamCas: readonly { readonly pattern: string; readonly certificate: string }[];
}

export interface Trust {
  readonly context: SecureContext;
  readonly mustVerify: boolean;
}

let rootsOnly: SecureContext | undefined;

/** The certificate authorities that the proxy trusts for one sandbox. */
export class UpstreamTrust {
  readonly #options: UpstreamTrustOptions;
  readonly #contexts = new Map<string, SecureContext>();

  constructor(options: UpstreamTrustOptions) {
    this.#options = options;
  }

  trustFor(host: string): Trust {
    const { verifyUpstream, scopedVerifyUpstream } = this.#options;
    const scoped = scopedVerifyUpstream.find(({ pattern }) => matchesHost(parseHostPattern(pattern), host));
    return { context: this.#contextFor(host), mustVerify: scoped?.verify ?? verifyUpstream };
  }

  #contextFor(host: string): SecureContext {
    const { upstreamCas, scopedUpstreamCas } = this.#options;
    const scoped = scopedUpstreamCas.filter(({ pattern }) => matchesHost(parseHostPattern(pattern), host));
    const extra = [...upstreamCas, ...scoped.map(({ certificate }) => certificate)];
    if (extra.length === 0) return (rootsOnly ??= createSecureContext({ ca: hostRoots() }));
    const key = scoped.map(({ pattern }) => pattern).join(' ');
    const kept = this.#contexts.get(key) ?? createSecureContext({ ca: [...hostRoots(), ...extra] });
    this.#contexts.set(key, kept);
    return kept;
  }
}

/** The roots that this host trusts; Node's own where the host has none. */
function hostRoots(): string[] {
  const system = getCACertificates('system');
  return system.length > 0 ? system : getCACertificates('bundled');
}
