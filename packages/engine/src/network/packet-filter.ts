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
  /** What this engine opens at most. */
  readonly ceiling: Ceiling | null;
  readonly logger: Pick<Logger, 'warn'>;
  /** This host has become part of other networks, and the filter knows them. */
  readonly onNeighbours: () => void;
}

/** The nftables table of one engine: which links get packets through, who its neighbours are, and where DNS and judged connections go. */
export class PacketFilter {
  readonly #options: PacketFilterOptions;
  /** For commands that change a part of the table. */
  readonly nft = new Nft();
  #networks: readonly string[] = [];
  #following: Disposable | null = null;

  constructor(options: PacketFilterOptions) {
    this.#options = options;
  }

  /** The networks that this host is part of. */
  get networks(): readonly string[] {
    return this.#networks;
  }

  /** Replaces the whole table at once, and follows the networks of this host from then on. */
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

  /** DNS questions go to this port of the resolver. */
  async leadQuestions(port: number): Promise<void> {
    await this.nft.run(setResolverPort(this.#options.instance, this.#gateways, port));
  }

  /** Connections of a scope that are to be judged go to these ports of its proxy; null: they are denied. */
  async leadConnections(scope: ScopeKey, ports: Ports | null): Promise<void> {
    const { instance } = this.#options;
    await this.nft.run(
      ports === null
        ? closeProxyChain(instance, scope)
        : setProxyPorts(instance, this.#gateways, scope, ports),
    );
  }

  /** No sandbox of the scope is led to a proxy any more. */
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

  /** Nothing of the table is left. */
  async remove(): Promise<void> {
    await this.nft.run(deleteTable(this.#options.instance));
  }
}
