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

/** What a sandbox may reach. Today: nothing but itself, or public addresses and our resolver. */
export type Reach = 'loopback' | 'public';

export interface Traffic {
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/**
 * Prepares, hands out and takes back slots.
 * - `acquire` never hands out a slot twice, also not after a restart; it takes a prepared slot when one is ready.
 * - With reach `loopback` the namespace has no interface but lo.
 * - With reach `public` the sandbox reaches public addresses and DNS at `link.nameserver`, and never the host, its
 *   loopback, private, link-local, metadata or multicast addresses, or another sandbox, over IPv4 or IPv6.
 * - `release` succeeds when the slot is already gone, so cleanup can be repeated.
 * - `recover` finds the slots of an earlier process of this engine: those in `keep` stay usable, all others are removed.
 * - `close` stops helpers and removes prepared slots; slots that are in use stay.
 */
export interface Network {
  recover(keep: readonly string[]): Promise<void>;
  acquire(reach: Reach, signal: AbortSignal): Promise<Slot>;
  release(key: string): Promise<void>;
  /** Bytes as the sandbox sees them: received by it, sent by it. */
  traffic(slot: Slot): Traffic;
  close(): Promise<void>;
}
