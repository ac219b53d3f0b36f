import { isDeepStrictEqual } from 'node:util';
import type { NetworkDecision } from '@svc/contract/orchestrator';
import { matchesHost, parseHostPattern } from './proxy/host-pattern.ts';
import { rulesOf, type PolicySource } from './proxy/policy-rules.ts';
import type { Refusal, SandboxEgress, SeenConnection } from './proxy/sandbox-egress.ts';
import type { SecretSettings } from './secrets/secret-settings.ts';
import type { AuthorityPem } from './tls/installation-authority.ts';
import { Interceptor } from './tls/interceptor.ts';
import { LeafCertificates } from './tls/leaf-certificates.ts';
import { UpstreamTrust, type UpstreamTrustOptions } from './tls/upstream-trust.ts';
import type { DecisionReports } from './decision-reports.ts';

/** How the connections of a sandbox are inspected. */
export interface Interception {
  readonly interceptedPorts: readonly number[];
  /** Whether those ports are closed for UDP, because HTTP/3 would bypass the proxy. */
  readonly blockQuic: boolean;
  /** Whether plain HTTP is inspected at every other port too. */
  readonly readsPlainHttp: boolean;
  /** Hosts that are not intercepted: `example.com`, `*.example.com`. */
  readonly bypass: readonly string[];
  readonly cache: { readonly capacity: number; readonly validityHours: number };
  readonly trust: UpstreamTrustOptions;
  readonly secrets: SecretSettings;
}

/** Settings of one sandbox in the proxy, beside its policy. */
export interface ProxySettings extends Interception {
  readonly maxConnections: number;
  readonly authority: AuthorityPem;
}

/** For a sandbox whose connections are checked for their server name only. */
export const NO_INTERCEPTION: Interception = {
  interceptedPorts: [],
  blockQuic: false,
  readsPlainHttp: false,
  bypass: [],
  cache: { capacity: 1, validityHours: 24 },
  trust: { verifyUpstream: true, scopedVerifyUpstream: [], upstreamCas: [], scopedUpstreamCas: [] },
  secrets: { entries: [], onViolation: { type: 'block_and_log' } },
};

export interface ProxiedSandboxesOptions {
  readonly policies: PolicySource;
  readonly reports: Pick<DecisionReports, 'allowed' | 'denied'>;
}

interface Proxied {
  readonly settings: ProxySettings;
  readonly egress: SandboxEgress;
}

/** The proxied sandboxes, by client address. */
export class ProxiedSandboxes {
  readonly #options: ProxiedSandboxesOptions;
  readonly #sandboxes = new Map<string, Proxied>();
  /** Shared by sandboxes with the same authority and cache, which is most of them. */
  readonly #leaves = new Map<string, LeafCertificates>();

  constructor(options: ProxiedSandboxesOptions) {
    this.#options = options;
  }

  find(client: string): SandboxEgress | undefined {
    return this.#sandboxes.get(client)?.egress;
  }

  /**
   * null: the sandbox is gone, or no longer proxied. Returns whether open connections would now be inspected in another way.
   * @throws Error when the authority cannot sign.
   */
  set(client: string, settings: ProxySettings | null): boolean {
    const before = this.#sandboxes.get(client)?.settings ?? null;
    if (isDeepStrictEqual(before, settings)) return false;
    if (settings === null) this.#sandboxes.delete(client);
    else this.#sandboxes.set(client, { settings, egress: this.#make(client, settings) });
    return before !== null;
  }

  refused({ reason, ...connection }: Refusal): void {
    const { sandbox, destination, name } = connection;
    if (reason !== 'policy')
      return this.#options.reports.denied(
        sandbox,
        toDecision('deny', connection, { decidedBy: reason, rule: null }),
      );
    const { rule } = rulesOf(this.#options.policies, sandbox).decide(destination, name ?? undefined);
    const decidedBy = rule === null ? 'default' : 'rule';
    this.#options.reports.denied(sandbox, toDecision('deny', connection, { decidedBy, rule }));
  }

  passed(connection: SeenConnection): void {
    const { sandbox, destination, name } = connection;
    const { rule } = rulesOf(this.#options.policies, sandbox).decide(destination, name ?? undefined);
    const decidedBy = rule === null ? 'default' : 'rule';
    this.#options.reports.allowed(sandbox, toDecision('allow', connection, { decidedBy, rule }));
  }

  #make(client: string, settings: ProxySettings): SandboxEgress {
    const bypass = settings.bypass.map(parseHostPattern);
    const interceptor = new Interceptor({
      leaves: this.#leavesFor(settings),
      trust: new UpstreamTrust(settings.trust),
      secrets: settings.secrets,
      onRefusal: ({ destination, flight }, name, reason) =>
        this.refused({ sandbox: client, destination, speaks: flight.kind, name, reason }),
      onViolation: ({ destination, flight }, { host, ...secret }) => {
        const connection = { sandbox: client, destination, speaks: flight.kind, name: host };
        const decision = toDecision('deny', connection, { decidedBy: 'secret', rule: null });
        // Decisions that end the sandbox are never rate-limited.
        const isNeeded = secret.action === 'block_and_terminate';
        this.#options.reports.denied(client, { ...decision, kind: 'http', secret }, isNeeded);
      },
    });
    return {
      rules: rulesOf(this.#options.policies, client),
      maxConnections: settings.maxConnections,
      interceptedPorts: new Set(settings.interceptedPorts),
      readsPlainHttp: settings.readsPlainHttp,
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

function toDecision(
  verdict: NetworkDecision['verdict'],
  { destination, speaks, name }: Omit<SeenConnection, 'sandbox'>,
  decided: Pick<NetworkDecision, 'decidedBy' | 'rule'>,
): NetworkDecision {
  return {
    kind: speaks,
    verdict,
    host: name === '' ? null : name,
    address: destination.address,
    port: destination.port,
    protocol: 'tcp',
    ...decided,
  };
}
