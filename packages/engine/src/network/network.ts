import type { Interception } from '../egress/proxied-sandboxes.ts';
import type { KnownName } from '../policy/explain.ts';
import type { Ceiling } from '../policy/ceiling.ts';
import type { HostNetworks } from '../policy/groups.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { RequestedInterface } from './requested-interface.ts';

/**
 * The network place of a sandbox: a user namespace that is mapped to an unprivileged range of host ids, and a network namespace owned
 * by it, connected as the policy says.
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
  /** Of the sandbox's end: `02:…`. */
  readonly mac: string;
  /** Absent in a sandbox without IPv6. */
  readonly ipv6?: { readonly address: string; readonly gateway: string };
}

/**
 * How a sandbox is connected, which has to be known before it exists, because slots are prepared for it: loopback only, or a link over
 * which it reaches public addresses and our resolver. `setPolicy` changes what it reaches.
 */
export type Reach = 'loopback' | 'public';

/** The network state of a sandbox that outlives the engine that started it. */
export interface KeptSlot {
  readonly key: string;
  readonly policy: ResolvedPolicy;
  readonly interception?: Interception | null;
  /** The scope of the sandbox, see `setPolicy`. */
  readonly scope?: string | null;
}

export interface Traffic {
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/**
 * Packets that the filter denied are reported after some seconds, within a second while there is a watcher, and at once with `look`.
 * `look` returns when all denials before the call were reported, and never rejects.
 */
export interface Denials {
  look(): Promise<void>;
  watch(): Disposable;
}

/** The inputs of a decision besides the policy of the sandbox. */
export interface DecisionContext {
  readonly hostNetworks: HostNetworks;
  /** The names that the sandbox has resolved, where its policy depends on names. */
  readonly known: readonly KnownName[];
}

/**
 * Prepares, hands out and takes back slots.
 * - `recover` comes first. It finds the slots of an earlier process of this engine: those in `keep` stay usable and are
 *   returned, all others are removed. A slot in `keep` that does not exist any more is missing from the answer.
 * - `acquire` never hands out a slot twice, also not after a restart; it takes a prepared slot when one is ready. It fails
 *   with `insufficient_capacity` when all addresses are in use. With a `requested` interface a new link is made as it says; an address
 *   that another sandbox has fails with `invalid_sandbox_config`.
 * - With reach `loopback` the namespace has no interface but lo.
 * - With reach `public` the sandbox reaches public addresses and DNS at `link.nameserver`, and never the host, its
 *   loopback, private, link-local, metadata or multicast addresses, or another sandbox, over IPv4 or IPv6.
 * - `setPolicy` changes what a slot with a link may reach, at once and for connections that exist too; when it fails, the old policy
 *   holds. After a restart a slot that is kept never reaches what its policy forbids, not for a moment. A slot without a link reaches
 *   nothing under any policy. With `interception` connections to its ports are decrypted with certificates of the authority
 *   `authorityCertificate`. Connections that have to be judged by their content, or decrypted, go through a proxy process that serves
 *   one `scope` alone; null is a scope like any other.
 * - `onReport` is called with decisions about traffic of sandboxes: denials up to a rate limit, and samples of allowed traffic. All
 *   reports of a slot come before `release` returns.
 * - `release` returns when nothing of the slot is left, and succeeds when it is already gone, so cleanup can be repeated.
 *   Processes of the sandbox must have ended.
 * - `close` stops helpers and removes prepared slots; slots that are in use stay, cut off from DNS until the next `recover`.
 */
export interface Network {
  recover(keep: readonly KeptSlot[]): Promise<readonly Slot[]>;
  acquire(reach: Reach, signal: AbortSignal, requested?: RequestedInterface | null): Promise<Slot>;
  /** @throws PlatformError `invalid_sandbox_config` for an interface that no sandbox of this host could have. */
  checkInterface(requested: RequestedInterface): void;
  /** The most that sandboxes of this engine may reach: `setPolicy` and `recover` limit every policy to it. */
  readonly ceilings: readonly Ceiling[];
  /** Whether sandboxes with a link have IPv6 too. */
  readonly hasIpv6: boolean;
  setPolicy(
    slot: Slot,
    policy: ResolvedPolicy,
    interception?: Interception | null,
    scope?: string | null,
  ): Promise<void>;
  /** PEM. Sandboxes whose connections are decrypted have to trust it. */
  readonly authorityCertificate: string;
  /** Called with the key of a slot, until it is released. */
  onReport: (key: string, report: NetworkReport) => void;
  readonly denials: Denials;
  /** null: for a sandbox that does not run. */
  decisionContext(slot: Slot | null): Promise<DecisionContext>;
  release(key: string): Promise<void>;
  /** Bytes as the sandbox sees them: received by it, sent by it. Zero when the slot has no link or is gone. */
  traffic(slot: Slot): Traffic;
  close(): Promise<void>;
}
