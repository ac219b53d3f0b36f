import { randomBytes, randomInt } from 'node:crypto';
import { PlatformError } from '@svc/contract/errors';
import type { AddressPool } from './address-pool.ts';
import { cidr } from '../policy/address.ts';
import type { Ipv6Pool } from './ipv6-pool.ts';
import { wrongInterface, type RequestedInterface } from './requested-interface.ts';
import type { Reach, Slot, SlotLink } from './network.ts';
import { linkPrefix, proxyLinkPrefix } from './ruleset.ts';
import { SlotIndexes, type IndexRange } from './slot-indexes.ts';
import type { SlotRecord, SlotRecords } from './slot-records.ts';

export interface SlotPlansOptions {
  readonly pool: AddressPool;
  readonly ipv6Pool: Ipv6Pool | null;
  readonly records: Pick<SlotRecords, 'userPath' | 'networkPath'>;
  readonly instance: string;
  readonly firstHostId: number;
}

const IDS_PER_SLOT = 65_536;
/** The last host id, 2^32 - 1, means "none". */
const HOST_IDS = 2 ** 32 - 1;
const KEY_LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';
const KEY_LENGTH = 12;
/** 15 characters is the longest name of an interface: v, 8 of the instance, a dash, 5 of the key. */
const LINK_NAME_LETTERS = 5;
/** The name for a proxy has two dashes. */
const PROXY_LINK_LETTERS = 4;
/** Proxies take addresses from the end of the pool, where sandboxes with a requested address are least in their way. */
const MOST_PROXY_ADDRESSES = 1024;
const PROXY_SHARE = 8;
/** What every link has to carry for IPv6 to be on it. */
const IPV6_MIN_MTU = 1280;
/** For links without a requested MTU. Where a route takes less, the packet filter and the host report it. */
const DEFAULT_MTU = 1500;
/** The first byte of a locally administered address. */
const LOCAL_MAC = '02';

/** The link of a proxy, and what it has allocated. */
export interface PlannedLink {
  readonly index: number;
  readonly link: SlotLink;
}

/** Allocates address, ids and names for slots and proxies; they stay allocated until they are given back. */
export class SlotPlans {
  readonly #options: SlotPlansOptions;
  readonly #indexes: SlotIndexes;
  /** How many sandboxes there are addresses and host ids for; a large pool has more addresses than that. */
  readonly #size: number;

  constructor(options: SlotPlansOptions) {
    this.#options = options;
    const rangesOfIds = Math.floor((HOST_IDS - options.firstHostId) / IDS_PER_SLOT);
    this.#size = Math.min(options.pool.size, rangesOfIds);
    this.#indexes = new SlotIndexes(options.pool.size, this.#size);
  }

  reserve({ index }: SlotRecord): void {
    this.#indexes.reserve(index);
  }

  giveBack({ index }: Pick<SlotRecord, 'index'>): void {
    this.#indexes.release(index);
  }

  /** @throws PlatformError `invalid_sandbox_config` when no sandbox of this engine could have such an interface. */
  check(requested: RequestedInterface): void {
    this.#indexesFor(requested);
  }

  /** Whether an address that fits the request is free. */
  isFree(requested: RequestedInterface): boolean {
    return this.#indexes.hasFree(this.#indexesFor(requested));
  }

  /** Whether the slot holds an address that fits the request, also when it has no link. */
  keeps({ idBase }: Slot, requested: RequestedInterface): boolean {
    const { first, last } = this.#indexesFor(requested);
    const index = (idBase - this.#options.firstHostId) / IDS_PER_SLOT;
    return index >= first && index <= last;
  }

  plan(reach: Reach, requested: RequestedInterface | null): SlotRecord {
    const index =
      requested === null ? this.#indexes.take() : this.#indexes.takeWithin(this.#indexesFor(requested));
    if (index === null) throw allTaken(requested);
    const { records, instance, firstHostId } = this.#options;
    const key = randomKey(KEY_LENGTH);
    // Fresh for every slot: the name of a removed veth lingers in the kernel for a while.
    const hostInterface = `${linkPrefix(instance)}${key.slice(0, LINK_NAME_LETTERS)}`;
    const slot: Slot = {
      key,
      userNamespace: records.userPath(key),
      networkNamespace: records.networkPath(key),
      idBase: firstHostId + index * IDS_PER_SLOT,
      link: reach === 'public' ? { hostInterface, ...this.#linkOf(index, requested) } : null,
    };
    return { index, slot };
  }

  /** An address beyond the host ids of sandboxes where the pool has one. @throws PlatformError `insufficient_capacity` */
  planProxyLink(): PlannedLink {
    const { pool, instance } = this.#options;
    const last = pool.size - 1;
    const share = Math.min(MOST_PROXY_ADDRESSES, Math.ceil(pool.size / PROXY_SHARE));
    const index =
      this.#indexes.takeWithin({ first: pool.size - share, last }) ??
      this.#indexes.takeWithin({ first: 0, last });
    if (index === null) throw allTaken(null);
    const hostInterface = `${proxyLinkPrefix(instance)}${randomKey(PROXY_LINK_LETTERS)}`;
    return { index, link: { hostInterface, ...this.#linkOf(index, null) } };
  }

  #linkOf(index: number, requested: RequestedInterface | null): Omit<SlotLink, 'hostInterface'> {
    const { pool, ipv6Pool } = this.#options;
    const address = pool.addressOf(index);
    const mtu = requested?.mtu ?? DEFAULT_MTU;
    const ipv6 =
      ipv6Pool === null || mtu < IPV6_MIN_MTU
        ? {}
        : { ipv6: { address: ipv6Pool.addressOf(address), gateway: ipv6Pool.gateway } };
    return {
      address,
      gateway: pool.gateway,
      nameserver: pool.gateway,
      mtu,
      mac: requested?.mac ?? randomMac(),
      ...ipv6,
    };
  }

  /** An IPv6 address ends with the IPv4 address that belongs to it, so asking for one asks for the other. */
  #indexesFor(requested: RequestedInterface): IndexRange {
    const all = this.#ipv4Indexes(requested);
    const narrowed = (['ipv6_address', 'ipv6_pool'] as const).reduce((indexes, name) => {
      const wanted = name === 'ipv6_address' ? requested.ipv6Address : requested.ipv6Range;
      if (wanted === null) return indexes;
      const own = this.#ipv6Indexes(name, wanted, requested.mtu ?? DEFAULT_MTU);
      return { first: Math.max(indexes.first, own.first), last: Math.min(indexes.last, own.last) };
    }, all);
    if (narrowed.first <= narrowed.last) return narrowed;
    throw wrongInterface(
      requested.ipv6Address === null ? 'ipv6_pool' : 'ipv6_address',
      'ends with an IPv4 address that the rest of network.interface, or no sandbox of this host, can have',
    );
  }

  #ipv6Indexes(name: 'ipv6_address' | 'ipv6_pool', wanted: string, mtu: number): IndexRange {
    const { pool, ipv6Pool } = this.#options;
    if (ipv6Pool === null)
      throw wrongInterface(name, 'sandboxes of this host have no IPv6 (--ipv6-pool); leave it out');
    if (mtu < IPV6_MIN_MTU) throw wrongInterface(name, `needs an mtu of ${IPV6_MIN_MTU} or more`);
    const within = ipv6Pool.ipv4RangeOf(cidr(wanted));
    const [base = '', length] = within?.split('/') ?? [];
    // All of it, which is more than there are addresses for.
    if (length === '0') return this.#everyIndex();
    const found = within === null ? null : this.#usable(pool.indexesOf(base, Number(length)));
    if (found !== null) return found;
    const { gateway } = ipv6Pool;
    throw wrongInterface(
      name,
      `must end with an address of ${this.#announced()}, in the range of ${gateway} (--ipv6-pool)`,
    );
  }

  #ipv4Indexes({ address, range }: RequestedInterface): IndexRange {
    const { pool } = this.#options;
    const [base = pool.cidr, length = ''] = (range ?? pool.cidr).split('/');
    const within = this.#usable(pool.indexesOf(base, Number(length)));
    const remedy = `must lie in ${this.#announced()}, the addresses of this host's sandboxes (--address-pool)`;
    if (within === null) throw wrongInterface('ipv4_pool', remedy);
    if (address === null) return within;
    const own = this.#usable(pool.indexesOf(address, 32));
    if (own === null) throw wrongInterface('ipv4_address', remedy);
    if (own.first < within.first || own.last > within.last)
      throw wrongInterface('ipv4_address', `must lie in ${range ?? pool.cidr}, which is ipv4_pool`);
    return own;
  }

  /** Those of a range that a sandbox can have; null when there is none. */
  #usable(range: IndexRange | null): IndexRange | null {
    if (range === null) return null;
    const last = Math.min(range.last, this.#everyIndex().last);
    return range.first > last ? null : { first: range.first, last };
  }

  #everyIndex(): IndexRange {
    return { first: 0, last: this.#size - 1 };
  }

  #announced(): string {
    const { pool } = this.#options;
    const { first, last } = this.#everyIndex();
    return `${pool.addressOf(first)} to ${pool.addressOf(last)}`;
  }
}

function randomKey(length: number): string {
  return Array.from({ length }, () => KEY_LETTERS[randomInt(KEY_LETTERS.length)]).join('');
}

function randomMac(): string {
  return [LOCAL_MAC, ...(randomBytes(5).toString('hex').match(/../g) ?? [])].join(':');
}

function allTaken(requested: RequestedInterface | null): PlatformError {
  const { address, range, ipv6Address } = requested ?? { address: null, range: null, ipv6Address: null };
  if (address !== null) return wrongInterface('ipv4_address', `${address} is in use; choose another one`);
  if (ipv6Address !== null)
    return wrongInterface('ipv6_address', `${ipv6Address} is in use; choose another one`);
  const whose = range === null ? 'All sandbox addresses' : `All addresses of ${range}`;
  return new PlatformError('insufficient_capacity', `${whose} are in use; remove a sandbox first`);
}
