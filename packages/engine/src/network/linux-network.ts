import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { PlatformError } from '@svc/contract/errors';
import type { Logger } from 'pino';
import { Egress } from '../egress/egress.ts';
import type { Interception } from '../egress/proxied-sandboxes.ts';
import { scopeKey } from '../egress/proxies.ts';
import type { Resolver } from '../egress/resolvers.ts';
import { openInstallationAuthority, type AuthorityPem } from '../egress/tls/installation-authority.ts';
import type { HostCalls } from '../host/host-calls.ts';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import type { Ceiling } from '../policy/ceiling.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { HostNetworks } from '../policy/groups.ts';
import { parseAddressPool, type AddressPool } from './address-pool.ts';
import { DenialWatch } from './denial-watch.ts';
import { forwardPackets, warnOfObstacles } from './host-changes.ts';
import { addGateway, refuseOverlap, removeGateway } from './host-routing.ts';
import { closeIpv6, openIpv6 } from './host-ipv6.ts';
import { parseIpv6Pool, type Ipv6Pool } from './ipv6-pool.ts';
import type { RequestedInterface } from './requested-interface.ts';
import { readTraffic } from './link-traffic.ts';
import type { KeptSlot, Network, DecisionContext, Reach, Slot, SlotLink, Traffic } from './network.ts';
import { DEFAULT_MAX_PACKETS } from './packet-limit.ts';
import { PacketFilter } from './packet-filter.ts';
import type { SlotRules } from './policy-rules.ts';
import { PreparedSlots } from './prepared-slots.ts';
import { ProxyLinks } from './proxy-links.ts';
import { addProxyRouting, proxyGroup, removeProxyRouting } from './proxy-routing.ts';
import { linkPrefix } from './ruleset.ts';
import { SlotPlans } from './slot-plans.ts';
import { SlotPolicies } from './slot-policies.ts';
import { SlotRecords } from './slot-records.ts';
import { Slots } from './slots.ts';
import { readHostNetworks } from './host-networks.ts';

export interface LinuxNetworkOptions {
  /** Holds the pins and records; must not outlive a reboot (tmpfs). */
  readonly runFolder: string;
  readonly hostCalls: HostCalls;
  /** For example 172.30.0.0/16. Engines on one host need pools that do not overlap. */
  readonly addressPool: string;
  /** `auto`, or a range such as fd12:3456:789a::/96 that no other engine of this host has. Without it sandboxes have no IPv6. */
  readonly ipv6Pool?: string | null;
  /** The file of the authority that signs certificates for intercepted hosts; in the run folder unless given. */
  readonly authorityFile?: string;
  /** 4 to 8 hexadecimal digits that no other engine of this host has. */
  readonly instance: string;
  /** The first of the host ids that sandboxes are mapped to, 65,536 for each; those before it run the resolver and the proxies. */
  readonly firstHostId: number;
  readonly prepared: Readonly<Record<Reach, number>>;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** The limit of packets per second and sandbox, each way; 100,000 unless given. */
  readonly maxPackets?: number;
  /** The same in MiB; null: no limit. */
  readonly maxMib?: number | null;
  /** The most that any policy may allow; null or absent: no ceiling. */
  readonly ceiling?: Ceiling | null;
  /** The folder of Node's compile cache; null: none. */
  readonly codeCache?: string | null;
  /** svc-host, which opens sockets for the proxies; the one built here unless given. */
  readonly hostProgram?: string;
  /** A proxy without sandboxes ends after this time; a minute unless given. */
  readonly proxyIdleMs?: number;
  /** The limit of proxies; as many as fit into their memory unless given. */
  readonly maxProxies?: number;
  /** The upstream resolvers; those of this host unless given. */
  readonly resolvers?: readonly Resolver[];
}

/** Slots from user and network namespaces, veth pairs and one nftables table. Needs root. */
export class LinuxNetwork implements Network {
  readonly #options: LinuxNetworkOptions;
  readonly #pool: AddressPool;
  readonly #ipv6Pool: Ipv6Pool | null;
  readonly #plans: SlotPlans;
  readonly #slots: Slots;
  readonly #filter: PacketFilter;
  readonly #proxyLinks: ProxyLinks;
  readonly #policies: SlotPolicies;
  #prepared: Readonly<Record<Reach, PreparedSlots>> | null = null;
  #egress: Egress | null = null;
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
    const pools = { pool: this.#pool, ipv6Pool: this.#ipv6Pool };
    const { maxPackets = DEFAULT_MAX_PACKETS, maxMib = null, ceiling = null, instance, logger } = options;
    const onNeighbours = () => this.#egress?.setHostNetworks(this.hostNetworks());
    this.#filter = new PacketFilter({
      instance,
      ...pools,
      maxPackets,
      maxMib,
      ceiling,
      logger,
      onNeighbours,
    });
    this.#policies = new SlotPolicies({
      instance,
      hasIpv6: this.hasIpv6,
      nft: this.#filter.nft,
      egress: () => this.#egress,
      hostNetworks: () => this.hostNetworks(),
      authority: () => this.#authority,
      logger,
      pinsFile: join(options.runFolder, 'pins.jsonl'),
    });
    this.denials = new DenialWatch({
      instance,
      onDenied: (hostInterface, report) => this.#tell((link) => link.hostInterface === hostInterface, report),
      isNeeded: () => this.#slots.size > 0,
      logger,
    });
    const records = new SlotRecords(options.runFolder);
    this.#plans = new SlotPlans({ ...options, ...pools, records });
    const shared = { instance, hostCalls: options.hostCalls, plans: this.#plans, filter: this.#filter };
    this.#proxyLinks = new ProxyLinks(shared);
    this.#slots = new Slots({
      ...shared,
      logger,
      records,
      onLeaving: async (slot) => (readTraffic(slot).sentBytes > 0 ? this.denials.look() : undefined),
      onLeft: (slot) => this.#forget(slot),
    });
  }

  async recover(keep: readonly KeptSlot[]): Promise<readonly Slot[]> {
    const { instance, runFolder, logger } = this.#options;
    await this.#stop();
    await mkdir(runFolder, { recursive: true, mode: 0o700 });
    await refuseOverlap(this.#pool, linkPrefix(instance));
    const rules = new Map(
      keep.map(({ key, policy, interception = null, scope = null }) => [
        key,
        { policy: this.#below(policy), interception, scope: scopeKey(scope) },
      ]),
    );
    const kept = await this.#slots.adopt(new Set(rules.keys()));
    await addGateway(this.#pool.gateway);
    await addProxyRouting(instance);
    if (this.#ipv6Pool !== null) await openIpv6(this.#ipv6Pool, instance, this.#options);
    const { authorityFile = join(runFolder, 'authority.pem') } = this.#options;
    this.#authority = await openInstallationAuthority(authorityFile);
    const ruled = this.#loadRuleset(kept, rules);
    const steps = await Promise.allSettled([
      ruled.then(() => this.#slots.removeOthers(kept)).then(() => forwardPackets(runFolder, logger)),
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
    await this.#policies.holdToCeilings();
    return kept;
  }

  async acquire(
    reach: Reach,
    signal: AbortSignal,
    requested: RequestedInterface | null = null,
  ): Promise<Slot> {
    if (this.#prepared === null) throw notRunning();
    const prepared = this.#prepared[reach];
    if (requested === null || reach === 'loopback') return prepared.take(signal);
    signal.throwIfAborted();
    for (const unneeded of Object.values(this.#prepared)) {
      if (this.#plans.isFree(requested)) break;
      const slot = await unneeded.withdraw((one) => this.#plans.keeps(one, requested));
      if (slot !== null) await this.#slots.release(slot.key);
    }
    return this.#slots.make(reach, requested);
  }

  checkInterface(requested: RequestedInterface): void {
    this.#plans.check(requested);
  }

  async setPolicy(
    slot: Slot,
    policy: ResolvedPolicy,
    interception: Interception | null = null,
    scope: string | null = null,
  ): Promise<void> {
    if (this.#prepared === null) throw notRunning();
    await this.#policies.set(slot, { policy: this.#below(policy), interception, scope: scopeKey(scope) });
  }

  /** The ceiling of this engine. Ceilings of single sandboxes are part of their policies. */
  get ceilings(): readonly Ceiling[] {
    const { ceiling = null } = this.#options;
    return ceiling === null ? [] : [ceiling];
  }

  get hasIpv6(): boolean {
    return this.#ipv6Pool !== null;
  }

  get authorityCertificate(): string {
    return this.#authority.certificate;
  }

  /** The current classification of addresses for this host. */
  hostNetworks(): HostNetworks {
    return readHostNetworks(this.#pool, this.#ipv6Pool, this.#filter.networks);
  }

  async decisionContext(slot: Slot | null): Promise<DecisionContext> {
    const address = slot?.link?.address;
    const known = address === undefined ? undefined : await this.#egress?.known(address);
    return { hostNetworks: this.hostNetworks(), known: known ?? [] };
  }

  async release(key: string): Promise<void> {
    await this.#slots.release(key);
  }

  traffic(slot: Slot): Traffic {
    return readTraffic(slot);
  }

  async close(): Promise<void> {
    await this.#stop();
    if (this.#slots.size === 0) {
      await this.#filter.remove();
      await removeProxyRouting(this.#options.instance);
      await removeGateway(this.#pool.gateway);
      if (this.#ipv6Pool !== null) await closeIpv6(this.#ipv6Pool, this.#options.instance);
    }
    await this.#filter.nft.close();
  }

  #below(policy: ResolvedPolicy): ResolvedPolicy {
    const added = this.ceilings.filter((own) => !policy.ceilings.some((one) => isDeepStrictEqual(one, own)));
    return added.length === 0 ? policy : { ...policy, ceilings: [...policy.ceilings, ...added] };
  }

  async #stop(): Promise<void> {
    const { loopback, public: wired } = this.#prepared ?? {};
    this.#prepared = null;
    await Promise.all([loopback?.close(notRunning()), wired?.close(notRunning())]);
    this.denials.close();
    this.#filter.stopFollowing();
    await this.#egress?.close();
    this.#egress = null;
  }

  async #loadRuleset(kept: readonly Slot[], rules: ReadonlyMap<string, SlotRules>): Promise<void> {
    // Before the first await, because processes that start meanwhile need the policies.
    const policyLines = this.#policies.restore(kept, rules);
    await this.#filter.load(
      kept.flatMap(({ link }) => link ?? []),
      policyLines,
    );
  }

  /** Starts the resolver and the proxies; needs the rules that redirect traffic to them. */
  async #startEgress(ruled: Promise<void>): Promise<void> {
    const { runFolder, instance, firstHostId, resolvers = null, logger, codeCache = null } = this.#options;
    const { hostProgram = BUILT_SVC_HOST, proxyIdleMs, maxProxies } = this.#options;
    const egress = new Egress({
      runFolder,
      instance,
      hostProgram,
      listenAddresses: { ipv4: this.#pool.gateway, ipv6: this.#ipv6Pool?.gateway ?? null },
      lastHostId: firstHostId - 1,
      groupId: proxyGroup(instance),
      links: this.#proxyLinks,
      idleMs: proxyIdleMs,
      maxProxies,
      resolvers,
      logger,
      codeCache,
      hostNetworks: () => this.hostNetworks(),
      held: () => this.#policies.byAddress(),
      pinsOf: (client) => this.#policies.pinsOf(client),
      leadQuestions: async (port) => {
        await ruled;
        egress.setHostNetworks(this.hostNetworks());
        await this.#filter.leadQuestions(port);
      },
      leadConnections: async (scope, ports) => {
        await ruled;
        await this.#filter.leadConnections(scope, ports);
      },
      leadNowhere: (scope) => this.#filter.leadNowhere(scope),
      onReport: (client, report) => this.#tell((link) => link.address === client, report),
      onPin: (client, pins) => this.#policies.pin(client, pins),
    });
    this.#egress = egress;
    await egress.start();
  }

  #tell(isMeant: (link: SlotLink) => boolean, report: NetworkReport): void {
    const slot = this.#slots.withLink(isMeant);
    if (slot !== undefined) this.onReport(slot.key, report);
  }

  async #forget(slot: Slot): Promise<void> {
    if (slot.link !== null) this.#egress?.forget(slot.link.address);
    await this.#policies.remove(slot);
  }

  #prepare(reach: Reach): PreparedSlots {
    const { prepared, logger } = this.#options;
    return new PreparedSlots({
      target: prepared[reach],
      make: () => this.#slots.make(reach),
      remove: ({ key }) => this.#slots.release(key),
      logger,
    });
  }
}

function notRunning(): PlatformError {
  return new PlatformError('unavailable', 'The network of this engine is not running; try again when it is');
}
