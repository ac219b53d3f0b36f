import { matchesHost, parseHostPattern } from './proxy/host-pattern.ts';
import { rulesOf, type PolicySource } from './proxy/policy-rules.ts';
import type { ReadableConnection, SandboxEgress } from './proxy/sandbox-egress.ts';
import type { Violation } from './secrets/blocked-request.ts';
import type { SecretSettings } from './secrets/secret-settings.ts';
import type { AuthorityPem } from './tls/installation-authority.ts';
import { Interceptor } from './tls/interceptor.ts';
import { LeafCertificates } from './tls/leaf-certificates.ts';
import { UpstreamTrust, type UpstreamTrustOptions } from './tls/upstream-trust.ts';

/** What the proxy is told of one sandbox, beside its policy. */
export interface ProxySettings {
  readonly maxConnections: number;
  readonly interceptedPorts: readonly number[];
  /** Hosts that are left alone: `example.com`, `*.example.com`. */
  readonly bypass: readonly string[];
  readonly authority: AuthorityPem;
  readonly cache: { readonly capacity: number; readonly validityHours: number };
  readonly trust: UpstreamTrustOptions;
  readonly secrets: SecretSettings;
}

export interface ProxiedSandboxesOptions {
  readonly policies: PolicySource;
  readonly onViolation: (client: string, violation: Violation) => void;
  readonly onRefusal: (connection: ReadableConnection, name: string | null, reason: string) => void;
}

/** A sandbox that finds a way to break the same rule often is told of so often a second, and no more. */
const MAX_TOLD_PER_SECOND = 10;

/** The sandboxes whose connections are proxied, by their address. */
export class ProxiedSandboxes {
  readonly #options: ProxiedSandboxesOptions;
  readonly #sandboxes = new Map<string, SandboxEgress>();
  /** Shared by sandboxes with the same authority and cache, which is most of them. */
  readonly #leaves = new Map<string, LeafCertificates>();

  constructor(options: ProxiedSandboxesOptions) {
    this.#options = options;
  }

  find(client: string): SandboxEgress | undefined {
    return this.#sandboxes.get(client);
  }

  /** null: the sandbox is gone, or nothing of it is proxied. @throws Error when the authority cannot sign. */
  set(client: string, settings: ProxySettings | null): void {
    if (settings === null) this.#sandboxes.delete(client);
    else this.#sandboxes.set(client, this.#make(client, settings));
  }

  #make(client: string, settings: ProxySettings): SandboxEgress {
    const bypass = settings.bypass.map(parseHostPattern);
    const tell = onceInAWhile((violation: Violation) => this.#options.onViolation(client, violation));
    const interceptor = new Interceptor({
      leaves: this.#leavesFor(settings),
      trust: new UpstreamTrust(settings.trust),
      secrets: settings.secrets,
      onRefusal: this.#options.onRefusal,
      onViolation: (_, violation) => tell(violation),
    });
    return {
      rules: rulesOf(this.#options.policies, client),
      maxConnections: settings.maxConnections,
      interceptedPorts: new Set(settings.interceptedPorts),
      isBypassed: (name) => bypass.some((pattern) => matchesHost(pattern, name)),
      intercept: (connection) => interceptor.intercept(connection),
    };
  }

  #leavesFor({ authority, cache }: ProxySettings): LeafCertificates {
    const key = JSON.stringify([authority.certificate, cache]);
    const leaves = this.#leaves.get(key) ?? new LeafCertificates({ authority, ...cache });
    this.#leaves.set(key, leaves);
    return leaves;
  }
}

function onceInAWhile(tell: (violation: Violation) => void): (violation: Violation) => void {
  let [second, told] = [0, 0];
  return (violation) => {
    const now = Math.floor(performance.now() / 1000);
    if (now !== second) [second, told] = [now, 0];
    told += 1;
    // What ends the sandbox is never left out.
    if (told <= MAX_TOLD_PER_SECOND || violation.action === 'block_and_terminate') tell(violation);
  };
}
