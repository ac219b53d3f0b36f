import type { Logger } from 'pino';
import type { AddressPool } from './address-pool.ts';
import { connectedNetworks, followConnectedNetworks } from './connected-networks.ts';
import { withinPool, type Ipv6Pool } from './ipv6-pool.ts';
import type { SlotLink } from './network.ts';
import { loadRuleset, Nft } from './nft.ts';
import {
  addLink,
  deleteLink,
  deleteTable,
  linkPrefix,
  ruleset,
  setNeighbours,
  setProxyPort,
  setResolverPort,
} from './ruleset.ts';

interface PacketFilterOptions {
  readonly instance: string;
  readonly pool: AddressPool;
  readonly ipv6Pool: Ipv6Pool | null;
  readonly maxPackets: number;
  readonly maxMib: number | null;
  readonly logger: Pick<Logger, 'warn'>;
  /** This host has become part of other networks, and the filter knows them. */
  readonly onNeighbours: () => void;
}

/** The nftables table of one engine: which links get packets through, who its neighbours are, and where DNS and read connections go. */
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
    const lines = ruleset({ instance, pool, ipv6Pool, links: own, neighbours, maxPackets, maxMib });
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

  /** DNS questions and connections that are read go to these ports of the egress process. */
  async lead(port: number, proxyPorts: Parameters<typeof setProxyPort>[2]): Promise<void> {
    const { instance, pool, ipv6Pool } = this.#options;
    const gateways = { ipv4: pool.gateway, ipv6: ipv6Pool?.gateway ?? null };
    const commands = [
      setResolverPort(instance, gateways, port),
      setProxyPort(instance, gateways, proxyPorts),
    ];
    await this.nft.run(commands.join('; '));
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
