import type { Logger } from 'pino';
import type { Ports } from '../egress/egress-messages.ts';
import type { ScopeKey } from '../egress/proxies.ts';
import type { Ceiling } from '../policy/ceiling.ts';
import type { AddressPool } from './address-pool.ts';
import { connectedNetworks, followConnectedNetworks } from './connected-networks.ts';
import { withinPool, type Ipv6Pool } from './ipv6-pool.ts';
import type { SlotLink } from './network.ts';
import { loadRuleset, Nft } from './nft.ts';
import { ceilingLines } from './policy-rules.ts';
import {
  addLink,
  closeProxyChain,
  deleteLink,
  deleteTable,
  linkPrefix,
  ruleset,
  setNeighbours,
  removeProxyChain,
  setProxyPorts,
  setResolverPort,
  type Gateways,
} from './ruleset.ts';

interface PacketFilterOptions {
  readonly instance: string;
  readonly pool: AddressPool;
  readonly ipv6Pool: Ipv6Pool | null;
  readonly maxPackets: number;
  readonly maxMib: number | null;
  /** The upper bound of this engine for all policies. */
  readonly ceiling: Ceiling | null;
  readonly logger: Pick<Logger, 'warn'>;
  /** Called when the networks of this host have changed and the filter was updated. */
  readonly onNeighbours: () => void;
}

/**
 * The nftables table of one engine: the links that may pass packets, the neighbouring networks, and the ports that DNS and proxied
 * connections are redirected to.
 */
export class PacketFilter {
  readonly #options: PacketFilterOptions;
  /** Runs commands that change a part of the table. */
  readonly nft = new Nft();
  #networks: readonly string[] = [];
  #following: Disposable | null = null;

  constructor(options: PacketFilterOptions) {
    this.#options = options;
  }

  /** The networks that this host is connected to. */
  get networks(): readonly string[] {
    return this.#networks;
  }

  /** Replaces the whole table in one transaction, and follows the networks of this host from then on. */
  async load(links: readonly SlotLink[], policyLines: string): Promise<void> {
    const { instance, pool, ipv6Pool, maxPackets, maxMib, logger } = this.#options;
    const own = links.map((link) => withinPool(link, ipv6Pool));
    const neighbours = await connectedNetworks(linkPrefix(instance));
    this.#networks = neighbours;
    const opened = this.#options.ceiling;
    const ceiling = opened === null ? null : ceilingLines(opened, { hasIpv6: ipv6Pool !== null });
    const lines = ruleset({ instance, pool, ipv6Pool, links: own, neighbours, ceiling, maxPackets, maxMib });
    await loadRuleset(`${lines}\n${policyLines}`);
    this.#following = followConnectedNetworks(
      linkPrefix(instance),
      neighbours,
      async (networks) => {
        await this.nft.run(setNeighbours(instance, networks));
        this.#networks = networks;
        this.#options.onNeighbours();
      },
      (error) => logger.warn({ error }, 'The networks of this host could not be read; trying again'),
    );
  }

  async admit(link: SlotLink): Promise<void> {
    await this.nft.run(addLink(this.#options.instance, link));
  }

  async dismiss(link: SlotLink): Promise<void> {
    await this.nft.run(deleteLink(this.#options.instance, link));
  }

  /** Redirects DNS questions to this port of the resolver. */
  async leadQuestions(port: number): Promise<void> {
    await this.nft.run(setResolverPort(this.#options.instance, this.#gateways, port));
  }

  /** Redirects the connections of a scope that need a proxy to these ports; null: they are denied. */
  async leadConnections(scope: ScopeKey, ports: Ports | null): Promise<void> {
    const { instance } = this.#options;
    await this.nft.run(
      ports === null
        ? closeProxyChain(instance, scope)
        : setProxyPorts(instance, this.#gateways, scope, ports),
    );
  }

  /** Removes the redirection of a scope. */
  async leadNowhere(scope: ScopeKey): Promise<void> {
    await this.nft.run(removeProxyChain(this.#options.instance, scope));
  }

  get #gateways(): Gateways {
    const { pool, ipv6Pool } = this.#options;
    return { ipv4: pool.gateway, ipv6: ipv6Pool?.gateway ?? null };
  }

  stopFollowing(): void {
    this.#following?.[Symbol.dispose]();
    this.#following = null;
  }

  /** Removes the table. */
  async remove(): Promise<void> {
    await this.nft.run(deleteTable(this.#options.instance));
  }
}
