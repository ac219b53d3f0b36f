import { formatAddress, type Address } from '../policy/address.ts';
import { rulesFor } from '../policy/decide.ts';
import type { Surroundings } from '../policy/groups.ts';
import { resolvePolicy, type ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { Pin } from './egress-messages.ts';

const DEFAULT = resolvePolicy(undefined);
const MAX_PINS_PER_CLIENT = 4096;

interface Known {
  readonly name: string;
  readonly address: Address;
  readonly expiresAt: number;
}

/** What each sandbox may do, and which names led it to which addresses. Sandboxes are told apart by their address. */
export class ClientPolicies {
  readonly #policies: Map<string, ResolvedPolicy>;
  readonly #fallback: ResolvedPolicy;
  readonly #pins = new Map<string, Map<string, Known>>();
  /** Sandboxes whose connections are led to a proxy, which asks for the names that led to an address. */
  readonly #proxied: Set<string>;
  surroundings: Surroundings;

  /** `fallback` holds for sandboxes that have no policy of their own. */
  constructor(
    surroundings: Surroundings,
    policies: ReadonlyMap<string, ResolvedPolicy> = new Map(),
    proxied: ReadonlySet<string> = new Set(),
    fallback = DEFAULT,
  ) {
    this.surroundings = surroundings;
    this.#fallback = fallback;
    this.#policies = new Map(policies);
    this.#proxied = new Set(proxied);
  }

  policyOf(client: string): ResolvedPolicy {
    return this.#policies.get(client) ?? this.#fallback;
  }

  /** What the sandbox knows stays known under its new policy. Without one it is forgotten: the next to have the address is another. */
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

  /** What the sandbox was told and has not expired. Nothing is kept for those that have the default policy. */
  pinsOf(client: string): readonly Pin[] {
    return this.#current(client).map(({ name, address, expiresAt }) => ({
      name,
      address,
      seconds: Math.max(1, Math.ceil((expiresAt - performance.now()) / 1000)),
    }));
  }

  /**
   * Remembers what a sandbox is told. Returns the pins that the engine has to hear of first: those that rules about names need, and all
   * of a sandbox that is proxied. Without an engine this process is about to be replaced, and its successor would not know them.
   */
  remember(client: string, pins: readonly Pin[]): readonly Pin[] {
    const policy = this.#policies.get(client);
    // Nobody asks for names where no rule is about one.
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

  /** Names that led this sandbox to the address and have not expired. */
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
