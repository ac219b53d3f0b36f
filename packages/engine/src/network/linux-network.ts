import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import type { Logger } from 'pino';
import { EgressProcess } from '../egress/egress-process.ts';
import type { Interception } from '../egress/proxied-sandboxes.ts';
import type { Resolver } from '../egress/resolvers.ts';
import { openInstallationAuthority, type AuthorityPem } from '../egress/tls/installation-authority.ts';
import type { HostCalls } from '../host/host-calls.ts';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { Surroundings } from '../policy/groups.ts';
import { parseAddressPool, type AddressPool } from './address-pool.ts';
import { connectedNetworks, followConnectedNetworks } from './connected-networks.ts';
import { DenialWatch } from './denial-watch.ts';
import { forwardPackets, warnOfObstacles } from './host-changes.ts';
import { addGateway, interfacesWithPrefix, refuseOverlap, removeGateway, uplinkMtu } from './host-routing.ts';
import { closeIpv6, openIpv6 } from './host-ipv6.ts';
import { parseIpv6Pool, withinPool, type Ipv6Pool } from './ipv6-pool.ts';
import type { InterfaceWish } from './interface-wish.ts';
import { waitUntilLinkIsGone } from './link-removal.ts';
import { readTraffic } from './link-traffic.ts';
import type { KeptSlot, Network, Outlook, Reach, Slot, SlotLink, Traffic } from './network.ts';
import { loadRuleset, Nft } from './nft.ts';
import { DEFAULT_MAX_PACKETS } from './packet-limit.ts';
import type { SlotRules } from './policy-rules.ts';
import { PreparedSlots } from './prepared-slots.ts';
import { addProxyRouting, removeProxyRouting } from './proxy-routing.ts';
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
import { SlotPlans } from './slot-plans.ts';
import { SlotPolicies } from './slot-policies.ts';
import { SlotRecords, type SlotRecord } from './slot-records.ts';
import { surroundingsOf } from './surroundings.ts';

export interface LinuxNetworkOptions {
  /** Holds the pins and records; must not outlive a reboot (tmpfs). */
  readonly runFolder: string;
  readonly hostCalls: HostCalls;
  /** For example 172.30.0.0/16. Engines on one host need pools that do not overlap. */
  readonly addressPool: string;
  /** `auto`, or a range such as fd12:3456:789a::/96 that no other engine of this host has. Without it sandboxes have no IPv6. */
  readonly ipv6Pool?: string | null;
  /** Keeps the authority that signs for hosts whose connections are read; in the run folder unless given. */
  readonly authorityFile?: string;
  /** 4 to 8 hexadecimal digits that no other engine of this host has. */
  readonly instance: string;
  /** The first of the host ids that sandboxes are mapped to, 65,536 for each; the one before it runs the egress process. */
  readonly firstHostId: number;
  readonly prepared: Readonly<Record<Reach, number>>;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** How many packets one sandbox may send in a second, and receive; 100,000 unless given. */
  readonly maxPackets?: number;
  /** How many MiB; null: any number. */
  readonly maxMib?: number | null;
  /** Where Node keeps compiled code; null: nowhere. */
  readonly codeCache?: string | null;
  /** svc-host, which opens sockets for the egress process; the one built here unless given. */
  readonly hostProgram?: string;
  /** Where DNS questions go; the resolvers of this host unless given. */
  readonly resolvers?: readonly Resolver[];
}

/** Slots from user and network namespaces, veth pairs and one nftables table. Needs root. */
export class LinuxNetwork implements Network {
  readonly #options: LinuxNetworkOptions;
  readonly #pool: AddressPool;
  readonly #ipv6Pool: Ipv6Pool | null;
  readonly #records: SlotRecords;
  readonly #plans: SlotPlans;
  readonly #nft = new Nft();
  /** Every slot that exists or is being made: prepared, in use or on its way out. */
  readonly #slots = new Map<string, SlotRecord>();
  readonly #removing = new Map<string, Promise<void>>();
  #prepared: Readonly<Record<Reach, PreparedSlots>> | null = null;
  #egress: EgressProcess | null = null;
  readonly #policies: SlotPolicies;
  #neighbours: Disposable | null = null;
  #networks: readonly string[] = [];
  #authority: AuthorityPem = { certificate: '', key: '' };
  readonly denials: DenialWatch;
  onReport: Network['onReport'] = () => undefined;

  constructor(options: LinuxNetworkOptions) {
    if (!/^[0-9a-f]{4,8}$/.test(options.instance))
      throw new Error('An instance is 4 to 8 hexadecimal digits');
    this.#options = options;
    this.#pool = parseAddressPool(options.addressPool);
    const { ipv6Pool = null } = options;
    this.#ipv6Pool = ipv6Pool === null ? null : parseIpv6Pool(ipv6Pool, options.instance, this.#pool.gateway);
    this.#records = new SlotRecords(options.runFolder);
    this.#policies = new SlotPolicies({
      instance: options.instance,
      hasIpv6: this.hasIpv6,
      nft: this.#nft,
      egress: () => this.#egress,
      surroundings: () => this.surroundings(),
      authority: () => this.#authority,
      logger: options.logger,
      pinsFile: join(options.runFolder, 'pins.jsonl'),
    });
    this.denials = new DenialWatch({
      instance: options.instance,
      onDenied: (hostInterface, report) => this.#tell((link) => link.hostInterface === hostInterface, report),
      isNeeded: () => this.#slots.size > 0,
      logger: options.logger,
    });
    this.#plans = new SlotPlans({
      ...options,
      pool: this.#pool,
      ipv6Pool: this.#ipv6Pool,
      records: this.#records,
    });
  }

  async recover(keep: readonly KeptSlot[]): Promise<readonly Slot[]> {
    const { instance, runFolder, logger } = this.#options;
    await this.#stop();
    await mkdir(runFolder, { recursive: true, mode: 0o700 });
    await refuseOverlap(this.#pool, linkPrefix(instance));
    const rules = rulesByKey(keep);
    const kept = await this.#adopt(new Set(rules.keys()));
    this.#plans.mtu = await uplinkMtu();
    await addGateway(this.#pool.gateway);
    await addProxyRouting(instance);
    if (this.#ipv6Pool !== null) await openIpv6(this.#ipv6Pool, instance, this.#options);
    const { authorityFile = join(runFolder, 'authority.pem') } = this.#options;
    this.#authority = await openInstallationAuthority(authorityFile);
    const ruled = this.#loadRuleset(kept, rules);
    const steps = await Promise.allSettled([
      ruled.then(() => this.#removeStrangers(kept)).then(() => forwardPackets(runFolder, logger)),
      this.#startEgress(ruled),
      warnOfObstacles(instance, logger),
    ]);
    const failure = steps.find((step) => step.status === 'rejected');
    if (failure !== undefined) {
      await this.#stop();
      throw failure.reason;
    }
    this.#prepared = { loopback: this.#prepare('loopback'), public: this.#prepare('public') };
    this.denials.open();
    return kept;
  }

  async acquire(reach: Reach, signal: AbortSignal, wish: InterfaceWish | null = null): Promise<Slot> {
    if (this.#prepared === null) throw notRunning();
    const prepared = this.#prepared[reach];
    if (wish === null || reach === 'loopback') return prepared.take(signal);
    signal.throwIfAborted();
    if (!this.#plans.isFree(wish)) {
      const unused = await prepared.withdraw((slot) => this.#plans.fits(slot, wish));
      if (unused !== null) await this.release(unused.key);
    }
    return this.#make(reach, wish);
  }

  checkInterface(wish: InterfaceWish): void {
    this.#plans.check(wish);
  }

  async setPolicy(
    slot: Slot,
    policy: ResolvedPolicy,
    interception: Interception | null = null,
  ): Promise<void> {
    if (this.#prepared === null) throw notRunning();
    await this.#policies.set(slot, { policy, interception });
  }

  get hasIpv6(): boolean {
    return this.#ipv6Pool !== null;
  }

  get authorityCertificate(): string {
    return this.#authority.certificate;
  }

  /** What addresses are from where this host stands, now. */
  surroundings(): Surroundings {
    return surroundingsOf(this.#pool, this.#ipv6Pool, this.#networks);
  }

  async outlook(slot: Slot | null): Promise<Outlook> {
    const address = slot?.link?.address;
    const known = address === undefined ? undefined : await this.#egress?.known(address);
    return { surroundings: this.surroundings(), known: known ?? [] };
  }

  async release(key: string): Promise<void> {
    const record = this.#slots.get(key);
    if (record === undefined) return;
    const removing =
      this.#removing.get(key) ?? this.#remove(record).finally(() => this.#removing.delete(key));
    this.#removing.set(key, removing);
    await removing;
  }

  traffic(slot: Slot): Traffic {
    return readTraffic(slot);
  }

  async close(): Promise<void> {
    await this.#stop();
    if (this.#slots.size === 0) {
      await this.#nft.run(deleteTable(this.#options.instance));
      await removeProxyRouting(this.#options.instance);
      await removeGateway(this.#pool.gateway);
      if (this.#ipv6Pool !== null) await closeIpv6(this.#ipv6Pool, this.#options.instance);
    }
    await this.#nft.close();
  }

  async #stop(): Promise<void> {
    const { loopback, public: wired } = this.#prepared ?? {};
    this.#prepared = null;
    await Promise.all([loopback?.close(notRunning()), wired?.close(notRunning())]);
    this.denials.close();
    this.#neighbours?.[Symbol.dispose]();
    this.#neighbours = null;
    await this.#egress?.close();
    this.#egress = null;
  }

  /** Takes over the slots to keep from their records. */
  async #adopt(keep: ReadonlySet<string>): Promise<readonly Slot[]> {
    for (const record of this.#slots.values()) this.#plans.giveBack(record);
    this.#slots.clear();
    for (const key of await this.#records.keys()) {
      const record = await this.#records.read(key);
      if (record === null) continue;
      this.#slots.set(key, record);
      this.#plans.reserve(record);
    }
    const kept = [...this.#slots.values()].map(({ slot }) => slot).filter(({ key }) => keep.has(key));
    const pinned = await Promise.all(kept.map(({ key }) => this.#records.isPinned(key)));
    return kept.filter((_, position) => pinned[position]);
  }

  async #loadRuleset(kept: readonly Slot[], rules: ReadonlyMap<string, SlotRules>): Promise<void> {
    const { instance, logger, maxPackets = DEFAULT_MAX_PACKETS, maxMib = null } = this.#options;
    const links = kept.flatMap(({ link }) => (link === null ? [] : [withinPool(link, this.#ipv6Pool)]));
    // Before anything is waited for, because the egress process that starts meanwhile has to know them.
    const policyLines = this.#policies.restore(kept, rules);
    const neighbours = await connectedNetworks(linkPrefix(instance));
    this.#networks = neighbours;
    const pools = { pool: this.#pool, ipv6Pool: this.#ipv6Pool };
    const rulesetLines = ruleset({ instance, ...pools, links, neighbours, maxPackets, maxMib });
    await loadRuleset(`${rulesetLines}\n${policyLines}`);
    this.#neighbours = followConnectedNetworks(
      linkPrefix(instance),
      neighbours,
      async (networks) => {
        await this.#nft.run(setNeighbours(instance, networks));
        this.#networks = networks;
        this.#egress?.setSurroundings(this.surroundings());
      },
      (error) => logger.warn({ error }, 'The networks of this host could not be read; trying again'),
    );
  }

  async #removeStrangers(kept: readonly Slot[]): Promise<void> {
    const keys = new Set(kept.map(({ key }) => key));
    const names = new Set(kept.map(({ link }) => link?.hostInterface));
    const { hostCalls, instance } = this.#options;
    await Promise.all(
      (await this.#records.keys())
        .filter((key) => !keys.has(key))
        .map(async (key) => {
          if (this.#slots.has(key)) return this.release(key);
          // Cut short before its record was complete.
          await hostCalls.removeNamespaces(this.#records.userPath(key), this.#records.networkPath(key));
          await this.#records.remove(key);
        }),
    );
    const links = await interfacesWithPrefix(linkPrefix(instance));
    await Promise.all(links.filter((name) => !names.has(name)).map((name) => hostCalls.deleteLink(name)));
  }

  /** Queries can be led to the process once there are rules. */
  async #startEgress(ruled: Promise<void>): Promise<void> {
    const { instance, runFolder, firstHostId, resolvers, logger, codeCache = null } = this.#options;
    const { hostProgram = BUILT_SVC_HOST } = this.#options;
    const gateways = { ipv4: this.#pool.gateway, ipv6: this.#ipv6Pool?.gateway ?? null };
    const egress = new EgressProcess({
      listenAddress: gateways.ipv4,
      ipv6ListenAddress: gateways.ipv6,
      hostId: firstHostId - 1,
      resolvers: resolvers ?? null,
      hostProgram,
      recordFile: join(runFolder, 'egress.json'),
      logger,
      codeCache,
      onListening: async (port, proxyPorts) => {
        await ruled;
        egress.setSurroundings(this.surroundings());
        const lead = [
          setResolverPort(instance, gateways, port),
          setProxyPort(instance, gateways, proxyPorts),
        ];
        await this.#nft.run(lead.join('; '));
      },
      surroundings: () => this.surroundings(),
      sandboxes: () => this.#policies.byAddress(),
      onReport: (client, report) => this.#tell((link) => link.address === client, report),
      onPin: (client, pins) => this.#policies.pin(client, pins),
    });
    this.#egress = egress;
    await egress.start();
  }

  #tell(isMeant: (link: SlotLink) => boolean, report: NetworkReport): void {
    const found = this.#slots.values().find(({ slot: { link } }) => link !== null && isMeant(link));
    if (found !== undefined) this.onReport(found.slot.key, report);
  }

  #prepare(reach: Reach): PreparedSlots {
    const { prepared, logger } = this.#options;
    return new PreparedSlots({
      target: prepared[reach],
      make: () => this.#make(reach),
      remove: ({ key }) => this.release(key),
      logger,
    });
  }

  async #make(reach: Reach, wish: InterfaceWish | null = null): Promise<Slot> {
    const record = this.#plans.plan(reach, wish);
    const { slot } = record;
    this.#slots.set(slot.key, record);
    try {
      await this.#records.write(record);
      // Side by side, because an interface without an element gets nothing through.
      const steps = await Promise.allSettled([this.#createNamespaces(slot), this.#admit(slot)]);
      for (const step of steps) if (step.status === 'rejected') throw step.reason;
      return slot;
    } catch (error) {
      // The first error counts; what cannot be removed now is removed by the next `recover`.
      await this.release(slot.key).catch((failure: unknown) => {
        this.#options.logger.warn(
          { error: failure, slot: slot.key },
          'A network slot that failed could not be removed',
        );
      });
      throw error;
    }
  }

  async #createNamespaces({ userNamespace, networkNamespace, idBase, link }: Slot): Promise<void> {
    await this.#options.hostCalls.createNamespaces({
      userPath: userNamespace,
      networkPath: networkNamespace,
      idBase,
      link,
    });
  }

  async #admit({ link }: Slot): Promise<void> {
    if (link !== null) await this.#nft.run(addLink(this.#options.instance, link));
  }

  /** The index, and with it address and ids, is free again only when nothing of the slot is left. */
  async #remove(record: SlotRecord): Promise<void> {
    const { slot } = record;
    const { hostCalls, instance } = this.#options;
    const { userNamespace, networkNamespace, link } = slot;
    const steps = await Promise.allSettled([
      hostCalls.removeNamespaces(userNamespace, networkNamespace),
      link === null ? null : this.#nft.run(deleteLink(instance, link)),
      readTraffic(slot).sentBytes > 0 ? this.denials.look() : null,
    ]);
    for (const step of steps) if (step.status === 'rejected') throw step.reason;
    await this.#policies.remove(slot.key);
    if (link !== null) {
      this.#egress?.forget(link.address);
      await waitUntilLinkIsGone(link.hostInterface, hostCalls);
    }
    await this.#records.remove(slot.key);
    this.#slots.delete(slot.key);
    this.#plans.giveBack(record);
  }
}

function rulesByKey(keep: readonly KeptSlot[]): ReadonlyMap<string, SlotRules> {
  return new Map(keep.map(({ key, policy, interception = null }) => [key, { policy, interception }]));
}

function notRunning(): PlatformError {
  return new PlatformError('unavailable', 'The network of this engine is not running; try again when it is');
}
