import type { Address } from '../policy/address.ts';
import type { Surroundings } from '../policy/groups.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { ProxySettings } from './proxied-sandboxes.ts';
import type { Resolver } from './resolvers.ts';

/** What the engine tells each process first, over the line between them. */
export interface ProcessConfig {
  /** Host id to run as; no account, no sandbox and no other process of ours has it. */
  readonly hostId: number;
  /** Likewise; the packet filter knows the proxies of an engine by theirs. */
  readonly groupId: number;
  readonly surroundings: Surroundings;
}

/** It answers names for all sandboxes, so it is told no secret and reads no connection. */
export interface ResolverConfig extends ProcessConfig {
  readonly listenAddress: string;
  /** Null when sandboxes have no IPv6. */
  readonly ipv6ListenAddress: string | null;
  /** null = the resolvers of this host. */
  readonly resolvers: readonly Resolver[] | null;
  /** Of the sandboxes that have one of their own, by the address they ask from. */
  readonly policies: ReadonlyMap<string, ResolvedPolicy>;
  /** The sandboxes whose connections a proxy judges, which has to know every name that led to an address. */
  readonly proxied: ReadonlySet<string>;
  /** Whose sandboxes they are: what one asks is bounded together with what others of its scope ask. */
  readonly scopes: ReadonlyMap<string, string>;
  /** What sandboxes were told of names before. */
  readonly pins: ReadonlyMap<string, readonly Pin[]>;
}

/** It reads the connections of the sandboxes of one scope, and knows of no other. */
export interface ProxyConfig extends ProcessConfig {
  readonly hasIpv6: boolean;
  /** By their address. */
  readonly sandboxes: ReadonlyMap<string, ProxiedSandbox>;
}

/** A sandbox whose connections are led to the proxy. */
export interface ProxiedSandbox {
  readonly policy: ResolvedPolicy;
  /** They may hold values of secrets. */
  readonly settings: ProxySettings;
  /** Which names led it to which addresses. */
  readonly pins: readonly Pin[];
}

/** What a sandbox has been told about a name. */
export interface Pin {
  readonly name: string;
  readonly address: Address;
  /** How long it holds from now on. */
  readonly seconds: number;
}

/** What the engine tells any process later. Those with an id are answered with `done`. */
export type ProcessOrder =
  | { readonly kind: 'setSurroundings'; readonly surroundings: Surroundings }
  /** The next engine will find it. */
  | { readonly kind: 'recorded' }
  /** Whether it still answers. */
  | { readonly kind: 'ping'; readonly id: number };

export type ResolverOrder =
  | ProcessOrder
  /** Answered with what the sandbox has resolved at that moment. null: the sandbox is gone, or has the default. */
  | {
      readonly kind: 'setPolicy';
      readonly id: number;
      readonly client: string;
      readonly policy: ResolvedPolicy | null;
      readonly isProxied: boolean;
    }
  /** Answered with what the sandbox has resolved. */
  | { readonly kind: 'tellKnown'; readonly id: number; readonly client: string }
  | { readonly kind: 'setScope'; readonly client: string; readonly scope: string }
  /** The sandbox with that address is gone: what is under way for it ends. */
  | { readonly kind: 'forget'; readonly client: string }
  | { readonly kind: 'pinned'; readonly id: number; readonly done: boolean };

export type ProxyOrder =
  | ProcessOrder
  /** null: the sandbox is gone, or nothing of it is led to the proxy any more. Its connections end. */
  | {
      readonly kind: 'setSandbox';
      readonly id: number;
      readonly client: string;
      readonly sandbox: ProxiedSandbox | null;
    }
  /** The sandbox is about to be told these. */
  | {
      readonly kind: 'remember';
      readonly id: number;
      readonly client: string;
      readonly pins: readonly Pin[];
    };

/** What a process tells the engine. */
export type EgressReport =
  | { readonly kind: 'listening'; readonly ports: Ports }
  | { readonly kind: 'failed'; readonly reason: string }
  /** `pins` is what a sandbox has resolved, where that was asked for. */
  | { readonly kind: 'done'; readonly id: number; readonly pins: readonly Pin[] }
  /** The packet filter and the proxy must know these before the sandbox does. Answered with `pinned`. */
  | { readonly kind: 'pin'; readonly id: number; readonly client: string; readonly pins: readonly Pin[] }
  /** What was decided about what the sandbox with that address does. Not everything is told of. */
  | { readonly kind: 'decided'; readonly client: string; readonly report: NetworkReport };

/** Where a process listens, by the family that is spoken there. */
export interface Ports {
  readonly ipv4: number;
  readonly ipv6: number | null;
}

/** Where each process finds its end of the line to the engine. */
export const LINK_DESCRIPTOR = 3;
/** Where a proxy finds its sockets. */
export const LISTENER_DESCRIPTORS = { ipv4: 4, ipv6: 5 } as const;
