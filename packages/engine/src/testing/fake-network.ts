import { PlatformError } from '@svc/contract/errors';
import { cidr } from '../policy/address.ts';
import type { Ceiling } from '../policy/ceiling.ts';
import type { KnownName } from '../policy/explain.ts';
import { resolvePolicy, type ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { KeptSlot, Network, DecisionContext, Reach, Slot, Traffic } from '../network/network.ts';

/** State of the fake host that outlives an engine. Share one between fakes to simulate a restart. */
export interface FakeNetworkHost {
  readonly slots: Map<string, Slot>;
  lastIndex: number;
}

export interface FakeNetworkOptions {
  readonly host?: FakeNetworkHost;
  readonly capacity?: number;
  /** Called first by every operation that changes something; its errors fail the operation. */
  readonly beforeCall?: (operation: 'recover' | 'acquire' | 'setPolicy' | 'release') => void | Promise<void>;
}

/** Keeps the port's promises about ownership without a real network. Its namespaces cannot be joined. */
export class FakeNetwork implements Network {
  readonly #host: FakeNetworkHost;
  readonly #capacity: number;
  readonly #beforeCall: NonNullable<FakeNetworkOptions['beforeCall']>;
  readonly #policies = new Map<string, ResolvedPolicy>();
  readonly #known = new Map<string, readonly KnownName[]>();
  readonly #traffic = new Map<string, Traffic>();
  #isRunning = false;
  readonly hasIpv6 = false;
  readonly ceilings: readonly Ceiling[] = [];
  readonly authorityCertificate = 'the certificate of a pretended authority\n';
  onReport: Network['onReport'] = () => undefined;
  readonly denials = { look: () => Promise.resolve(), watch: () => ({ [Symbol.dispose]: () => undefined }) };

  constructor({ host, capacity = 1000, beforeCall = () => undefined }: FakeNetworkOptions = {}) {
    this.#host = host ?? newFakeNetworkHost();
    this.#capacity = capacity;
    this.#beforeCall = beforeCall;
  }

  /** The keys of the slots that exist. */
  get keys(): readonly string[] {
    return [...this.#host.slots.keys()];
  }

  /** Sets the result of `traffic` for a slot. */
  setTraffic(key: string, traffic: Traffic): void {
    this.#traffic.set(key, traffic);
  }

  /** Sets the resolved addresses of a slot. */
  setKnown(key: string, names: readonly KnownName[]): void {
    this.#known.set(key, names);
  }

  /** The policy of a slot. */
  policyOf(key: string): ResolvedPolicy {
    return this.#policies.get(key) ?? resolvePolicy(undefined);
  }

  async recover(keep: readonly KeptSlot[]): Promise<readonly Slot[]> {
    await this.#beforeCall('recover');
    const kept = new Map(keep.map(({ key, policy }) => [key, policy]));
    for (const key of this.keys) if (!kept.has(key)) this.#host.slots.delete(key);
    for (const key of this.keys) this.#policies.set(key, kept.get(key) ?? resolvePolicy(undefined));
    this.#isRunning = true;
    return [...this.#host.slots.values()];
  }

  async acquire(reach: Reach, signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    await this.#beforeCall('acquire');
    if (!this.#isRunning) throw new PlatformError('unavailable', 'Call recover first');
    if (this.#host.slots.size >= this.#capacity) {
      throw new PlatformError(
        'insufficient_capacity',
        'All sandbox addresses are in use; remove a sandbox first',
      );
    }
    const slot = fakeSlot(++this.#host.lastIndex, reach);
    this.#host.slots.set(slot.key, slot);
    return slot;
  }

  checkInterface(): void {}

  async setPolicy({ key }: Slot, policy: ResolvedPolicy): Promise<void> {
    await this.#beforeCall('setPolicy');
    this.#policies.set(key, policy);
  }

  async decisionContext(slot: Slot | null): Promise<DecisionContext> {
    const hostNetworks = {
      gateway: cidr('172.30.0.1'),
      hostAddresses: [],
      neighbours: [],
      pool: cidr('172.30.0.0/16'),
    };
    return { hostNetworks, known: slot === null ? [] : (this.#known.get(slot.key) ?? []) };
  }

  async release(key: string): Promise<void> {
    await this.#beforeCall('release');
    this.#policies.delete(key);
    this.#known.delete(key);
    this.#host.slots.delete(key);
    this.#traffic.delete(key);
  }

  traffic(slot: Slot): Traffic {
    return this.#traffic.get(slot.key) ?? { receivedBytes: 0, sentBytes: 0 };
  }

  async close(): Promise<void> {
    this.#isRunning = false;
  }
}

export function newFakeNetworkHost(): FakeNetworkHost {
  return { slots: new Map(), lastIndex: 0 };
}

function fakeSlot(index: number, reach: Reach): Slot {
  const key = `fake${String(index).padStart(8, '0')}`;
  const gateway = '172.30.0.1';
  const link = {
    hostInterface: `vfake-${index}`,
    address: `172.30.${(index + 1) >> 8}.${(index + 1) & 255}`,
    gateway,
    nameserver: gateway,
    mtu: 1500,
    mac: '02:00:00:00:00:01',
  };
  return {
    key,
    userNamespace: `/nonexistent/${key}/user`,
    networkNamespace: `/nonexistent/${key}/net`,
    idBase: 0x10000000 + index * 65_536,
    link: reach === 'public' ? link : null,
  };
}
