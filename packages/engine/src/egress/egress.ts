import { join } from 'node:path';
import type { Logger } from 'pino';
import type { HostNetworks } from '../policy/groups.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { Pin, Ports } from './egress-messages.ts';
import { Proxies, type ProxiedRules, type ProxiesOptions, type ScopeKey } from './proxies.ts';
import type { Resolver } from './resolvers.ts';
import { ResolverProcess } from './resolver-process.ts';

/** Initial state of a process that starts now, by sandbox address. */
export interface HeldRules {
  readonly policies: ReadonlyMap<string, ResolvedPolicy>;
  readonly proxied: ReadonlyMap<string, ProxiedRules>;
  readonly scopes: ReadonlyMap<string, ScopeKey>;
}

export interface EgressOptions {
  readonly runFolder: string;
  /** Distinguishes engines on one host. */
  readonly instance: string;
  readonly hostProgram: string;
  /** Addresses at which sandboxes reach this host; the IPv6 one is null when they have none. */
  readonly listenAddresses: { readonly ipv4: string; readonly ipv6: string | null };
  /** Host id of the resolver; the proxies use the ids below it. */
  readonly lastHostId: number;
  /** Group of the proxies. */
  readonly groupId: number;
  readonly links: ProxiesOptions['links'];
  /** null = the resolvers of this host. */
  readonly resolvers: readonly Resolver[] | null;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  readonly codeCache: string | null;
  readonly hostNetworks: () => HostNetworks;
  readonly held: () => HeldRules;
  /** Addresses that a sandbox resolved. */
  readonly pinsOf: (client: string) => readonly Pin[];
  /** Idle time after which a proxy without a sandbox ends; default one minute. */
  readonly idleMs?: number | undefined;
  /** Maximum number of proxies; default: as many as fit into their memory. */
  readonly maxProxies?: number | undefined;
  readonly leadQuestions: (port: number) => Promise<void>;
  readonly leadConnections: (scope: ScopeKey, ports: Ports | null) => Promise<void>;
  readonly leadNowhere: (scope: ScopeKey) => Promise<void>;
  /** Called with each decision about the traffic of a sandbox. */
  readonly onReport: (client: string, report: NetworkReport) => void;
  /** Resolves when the packet filter has the addresses. */
  readonly onPin: (client: string, pins: readonly Pin[]) => Promise<void>;
}

/** The processes that read untrusted traffic: one resolver for all sandboxes, and a proxy for each scope that needs one. */
export class Egress {
  readonly #resolver: ResolverProcess;
  readonly #proxies: Proxies;
  readonly #held: () => HeldRules;

  constructor(options: EgressOptions) {
    const { runFolder, lastHostId, listenAddresses, resolvers, hostNetworks, held, pinsOf, onReport } =
      options;
    this.#held = held;
    this.#resolver = new ResolverProcess({
      hostProgram: options.hostProgram,
      logger: options.logger,
      codeCache: options.codeCache,
      recordFile: join(runFolder, 'resolver.json'),
      config: () => {
        const { policies, proxied, scopes } = held();
        return {
          hostId: lastHostId,
          groupId: lastHostId,
          listenAddress: listenAddresses.ipv4,
          ipv6ListenAddress: listenAddresses.ipv6,
          resolvers,
          hostNetworks: hostNetworks(),
          policies,
          proxied: new Set(proxied.keys()),
          scopes,
          pins: new Map([...policies.keys()].map((client) => [client, pinsOf(client)])),
        };
      },
      onListening: options.leadQuestions,
      onReport,
      onPin: async (client, pins) => {
        await options.onPin(client, pins);
        await this.#proxies.remember(client, pins);
      },
    });
    this.#proxies = new Proxies({
      ...options,
      recordFolder: join(runFolder, 'proxies'),
      lastHostId: lastHostId - 1,
      lead: options.leadConnections,
    });
  }

  /** Resolves when the resolver answers. Connections wait until their proxy runs. */
  async start(): Promise<void> {
    await Promise.all([this.#resolver.start(), this.#proxies.restore(this.#held().proxied)]);
  }

  /**
   * Sets the rules of a sandbox; they hold for queries and connections from the moment it returns. null: the sandbox is gone, or has the
   * default. Returns its resolved addresses.
   */
  async hold(
    client: string,
    policy: ResolvedPolicy | null,
    proxied: ProxiedRules | null,
  ): Promise<readonly Pin[]> {
    const pins = await this.#resolver.setPolicy(client, policy, proxied !== null);
    await this.#proxies.hold(client, proxied);
    if (proxied !== null && pins.length > 0) await this.#proxies.remember(client, pins);
    return pins;
  }

  async known(client: string): Promise<readonly Pin[]> {
    return await this.#resolver.known(client);
  }

  setHostNetworks(hostNetworks: HostNetworks): void {
    this.#resolver.setHostNetworks(hostNetworks);
    this.#proxies.setHostNetworks(hostNetworks);
  }

  /** Sets the scope of a sandbox, also of one with the default policy. */
  setScope(client: string, scope: ScopeKey): void {
    this.#resolver.setScope(client, scope);
  }

  /** The sandbox with that address is gone: its queries and connections end, since the next sandbox with it is another one. */
  forget(client: string): void {
    this.#resolver.forget(client);
  }

  async close(): Promise<void> {
    await Promise.all([this.#resolver.close(), this.#proxies.close()]);
  }
}
