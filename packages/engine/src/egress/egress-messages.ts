import type { Address } from '../policy/address.ts';
import type { HostNetworks } from '../policy/groups.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { ProxySettings } from './proxied-sandboxes.ts';
import type { Resolver } from './resolvers.ts';

/** The first message from the engine to each process: its configuration. */
export interface ProcessConfig {
  /** Host id to run as; no account, no sandbox and no other process of svc has it. */
  readonly hostId: number;
  /** Host group, likewise unique; the packet filter recognizes the proxies of an engine by theirs. */
  readonly groupId: number;
  readonly hostNetworks: HostNetworks;
}

/** Answers the names of all sandboxes; it gets no secret and reads no connection. */
export interface ResolverConfig extends ProcessConfig {
  readonly listenAddress: string;
  /** Null when sandboxes have no IPv6. */
  readonly ipv6ListenAddress: string | null;
  /** null = the resolvers of this host. */
  readonly resolvers: readonly Resolver[] | null;
  /** Policies of sandboxes that have one, by client address. */
  readonly policies: ReadonlyMap<string, ResolvedPolicy>;
  /** Sandboxes with a proxy; the proxy needs every name that resolved to an address. */
  readonly proxied: ReadonlySet<string>;
  /** Scopes of the sandboxes; the queries of one scope share a limit. */
  readonly scopes: ReadonlyMap<string, string>;
  /** Addresses that sandboxes resolved before. */
  readonly pins: ReadonlyMap<string, readonly Pin[]>;
}

/** Reads the connections of the sandboxes of one scope, and has no data of other scopes. */
export interface ProxyConfig extends ProcessConfig {
  readonly hasIpv6: boolean;
  /** By client address. */
  readonly sandboxes: ReadonlyMap<string, ProxiedSandbox>;
}

/** A sandbox whose connections are redirected to the proxy. */
export interface ProxiedSandbox {
  readonly policy: ResolvedPolicy;
  /** May hold values of secrets. */
  readonly settings: ProxySettings;
  /** Addresses and the names that resolved to them. */
  readonly pins: readonly Pin[];
}

/** An address in an answer that a sandbox got. */
export interface Pin {
  readonly name: string;
  readonly address: Address;
  /** Remaining time in which it is valid. */
  readonly seconds: number;
}

/** Later messages from the engine to any process. Those with an id are answered with `done`. */
export type ProcessOrder =
  | { readonly kind: 'setHostNetworks'; readonly hostNetworks: HostNetworks }
  /** The process is recorded: the next engine will find it. */
  | { readonly kind: 'recorded' }
  /** Health check. */
  | { readonly kind: 'ping'; readonly id: number };

export type ResolverOrder =
  | ProcessOrder
  /** Answered with the sandbox's resolved addresses at that moment. null: the sandbox is gone, or has the default. */
  | {
      readonly kind: 'setPolicy';
      readonly id: number;
      readonly client: string;
      readonly policy: ResolvedPolicy | null;
      readonly isProxied: boolean;
    }
  /** Answered with the sandbox's resolved addresses. */
  | { readonly kind: 'tellKnown'; readonly id: number; readonly client: string }
  | { readonly kind: 'setScope'; readonly client: string; readonly scope: string }
  /** The sandbox with that address is gone: its queries are cancelled. */
  | { readonly kind: 'forget'; readonly client: string }
  | { readonly kind: 'pinned'; readonly id: number; readonly done: boolean };

export type ProxyOrder =
  | ProcessOrder
  /** null: the sandbox is gone, or no longer proxied. Its connections are closed. */
  | {
      readonly kind: 'setSandbox';
      readonly id: number;
      readonly client: string;
      readonly sandbox: ProxiedSandbox | null;
    }
  /** Addresses that the sandbox is about to get. */
  | {
      readonly kind: 'remember';
      readonly id: number;
      readonly client: string;
      readonly pins: readonly Pin[];
    };

/** Messages from a process to the engine. */
export type EgressReport =
  | { readonly kind: 'listening'; readonly ports: Ports }
  | { readonly kind: 'failed'; readonly reason: string }
  /** `pins`: the sandbox's resolved addresses, where they were requested. */
  | { readonly kind: 'done'; readonly id: number; readonly pins: readonly Pin[] }
  /** The packet filter and the proxy must have these before the sandbox gets them. Answered with `pinned`. */
  | { readonly kind: 'pin'; readonly id: number; readonly client: string; readonly pins: readonly Pin[] }
  /** A decision about the sandbox with that address. Reports are rate-limited. */
  | { readonly kind: 'decided'; readonly client: string; readonly report: NetworkReport };

/** Listening ports, by address family. */
export interface Ports {
  readonly ipv4: number;
  readonly ipv6: number | null;
}

/** File descriptor of each process's end of the link to the engine. */
export const LINK_DESCRIPTOR = 3;
/** File descriptors of a proxy's listening sockets. */
export const LISTENER_DESCRIPTORS = { ipv4: 4, ipv6: 5 } as const;
