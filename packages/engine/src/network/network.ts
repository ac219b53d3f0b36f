/**
 * Where a sandbox lives on the network, and as whom: a user namespace whose root is an unprivileged range of
 * host ids, and a network namespace owned by it, wired up as the policy says.
 */
export interface Slot {
  /** Names the slot on this host. Made by the engine; safe as a file name. */
  readonly key: string;
  /** Files that pin the namespaces; a runtime joins them. */
  readonly userNamespace: string;
  readonly networkNamespace: string;
  /** Host id that guest id 0 is mapped to; 65,536 ids follow it. */
  readonly idBase: number;
  /** Absent when the sandbox has loopback only. */
  readonly link: SlotLink | null;
}

export interface SlotLink {
  readonly hostInterface: string;
  readonly address: string;
  readonly gateway: string;
  readonly nameserver: string;
  readonly mtu: number;
}

/**
 * What a sandbox may reach. Today: nothing but itself, or public IPv4 addresses and our resolver (there is no IPv6 inside).
 *
 * A reach is what has to be known before a sandbox exists, because prepared slots are wired for it. Rules of a policy,
 * published ports and interception do not change the wiring: they will be applied to a slot that was acquired with reach
 * `public` (by a further method that takes the slot and its policy), as elements of maps from the slot's interface to a
 * verdict or a listener, and as the policy that the egress process holds for the slot's address.
 */
export type Reach = 'loopback' | 'public';

export interface Traffic {
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/**
 * Prepares, hands out and takes back slots.
 * - `recover` comes first. It finds the slots of an earlier process of this engine: those in `keep` stay usable and are
 *   returned, all others are removed. A slot in `keep` that does not exist any more is missing from the answer.
 * - `acquire` never hands out a slot twice, also not after a restart; it takes a prepared slot when one is ready. It fails
 *   with `insufficient_capacity` when all addresses are in use.
 * - With reach `loopback` the namespace has no interface but lo.
 * - With reach `public` the sandbox reaches public addresses and DNS at `link.nameserver`, and never the host, its
 *   loopback, private, link-local, metadata or multicast addresses, or another sandbox, over IPv4 or IPv6.
 * - `release` returns when nothing of the slot is left, and succeeds when it is already gone, so cleanup can be repeated.
 *   Processes of the sandbox must have ended.
 * - `close` stops helpers and removes prepared slots; slots that are in use stay, cut off from DNS until the next `recover`.
 */
export interface Network {
  recover(keep: readonly string[]): Promise<readonly Slot[]>;
  acquire(reach: Reach, signal: AbortSignal): Promise<Slot>;
  release(key: string): Promise<void>;
  /** Bytes as the sandbox sees them: received by it, sent by it. Zero when the slot has no link or is gone. */
  traffic(slot: Slot): Traffic;
  close(): Promise<void>;
}
