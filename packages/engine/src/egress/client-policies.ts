import { formatAddress, type Address } from '../policy/address.ts';
import { rulesFor } from '../policy/decide.ts';
import type { HostNetworks } from '../policy/groups.ts';
import { resolvePolicy, type ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { Pin } from './egress-messages.ts';

const DEFAULT = resolvePolicy(undefined);
const MAX_PINS_PER_CLIENT = 4096;

interface Known {
  readonly name: string;
  readonly address: Address;
  readonly expiresAt: number;
}

/** The policy of each sandbox and the addresses that it has resolved. A sandbox is identified by its address. */
export class ClientPolicies {
  readonly #policies: Map<string, ResolvedPolicy>;
  readonly #fallback: ResolvedPolicy;
  readonly #pins = new Map<string, Map<string, Known>>();
  /** Sandboxes with a proxy, which needs the names of every resolved address. */
  readonly #proxied: Set<string>;
  hostNetworks: HostNetworks;

  /** `fallback` is the policy of sandboxes that have none of their own. */
  constructor(
    hostNetworks: HostNetworks,
    policies: ReadonlyMap<string, ResolvedPolicy> = new Map(),
    proxied: ReadonlySet<string> = new Set(),
    fallback = DEFAULT,
  ) {
    this.hostNetworks = hostNetworks;
    this.#fallback = fallback;
    this.#policies = new Map(policies);
    this.#proxied = new Set(proxied);
  }

  policyOf(client: string): ResolvedPolicy {
    return this.#policies.get(client) ?? this.#fallback;
  }

  /** Resolved addresses stay valid under a new policy. Without a policy they are deleted: the next sandbox with this address is another one. */
  set(client: string, policy: ResolvedPolicy | null, isProxied = false): readonly Pin[] {
    if (isProxied) this.#proxied.add(client);
    else this.#proxied.delete(client);
    if (policy === null) {
      this.#policies.delete(client);
      this.#pins.delete(client);
      return [];
    }
    this.#policies.set(client, policy);
    return this.pinsOf(client);
  }

  /** Resolved addresses that have not expired. None are kept for sandboxes with the default policy. */
  pinsOf(client: string): readonly Pin[] {
    return this.#current(client).map(({ name, address, expiresAt }) => ({
      name,
      address,
      seconds: Math.max(1, Math.ceil((expiresAt - performance.now()) / 1000)),
    }));
  }

  /**
   * Stores the addresses of an answer. Returns the pins that the engine must confirm before the answer is sent: those that rules about names
   * need, and all of a proxied sandbox. Pins need an engine: without one this process is about to be replaced, and its successor would lack them.
   */
  remember(client: string, pins: readonly Pin[]): readonly Pin[] {
    const policy = this.#policies.get(client);
    // Without a policy there are no rules about names, so nothing is stored.
    if (policy === undefined) return [];
    const known = this.#pins.get(client) ?? new Map<string, Known>();
    this.#pins.set(client, known);
    for (const { name, address, seconds } of pins) {
      const key = `${name} ${formatAddress(address)}`;
      known.delete(key);
      known.set(key, { name, address, expiresAt: performance.now() + seconds * 1000 });
    }
    for (const oldest of [...known.keys()].slice(0, Math.max(0, known.size - MAX_PINS_PER_CLIENT)))
      known.delete(oldest);
    return this.#proxied.has(client) ? pins : pins.filter(({ name }) => rulesFor(policy, name).length > 0);
  }

  /** Names that resolved to the address for this sandbox and have not expired. */
  namesOf(client: string, address: Address): readonly string[] {
    const text = formatAddress(address);
    return this.#current(client).flatMap((pin) => (formatAddress(pin.address) === text ? [pin.name] : []));
  }

  #current(client: string): readonly Known[] {
    const now = performance.now();
    const known = this.#pins.get(client) ?? new Map<string, Known>();
    for (const [key, { expiresAt }] of known) if (expiresAt <= now) known.delete(key);
    return [...known.values()];
  }
}
