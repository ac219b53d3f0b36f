import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { matchesHost, parseHostPattern } from '../proxy/host-pattern.ts';

export interface UpstreamTrustOptions {
  readonly verifyUpstream: boolean;
  /** The first pattern that fits decides. */
  readonly scopedVerifyUpstream: readonly { readonly pattern: string; readonly verify: boolean }[];
  /** PEM, trusted beside the roots of this host. */
  readonly upstreamCas: readonly string[];
  /** PEM, trusted for hosts that fit. */
  readonly scopedUpstreamCas: readonly { readonly pattern: string; readonly certificate: string }[];
}

export interface Trust {
  readonly context: SecureContext;
  readonly mustVerify: boolean;
}

let rootsOnly: SecureContext | undefined;

/** Whom the proxy believes to be who they say, on behalf of one sandbox. */
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

/** What this host trusts; what Node ships with where the host says nothing. */
function hostRoots(): string[] {
  const system = getCACertificates('system');
  return system.length > 0 ? system : getCACertificates('bundled');
}
