import type { Address } from '../policy/address.ts';
import type { Surroundings } from '../policy/groups.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { ProxySettings } from './proxied-sandboxes.ts';
import type { Resolver } from './resolvers.ts';

/** What the engine tells an egress process first, over the channel that Node opens between them. */
export interface EgressConfig {
  readonly listenAddress: string;
  /** Null when sandboxes have no IPv6. */
  readonly ipv6ListenAddress: string | null;
  /** Host id to run as; no account and no sandbox has it. */
  readonly hostId: number;
  /** null = the resolvers of this host. */
  readonly resolvers: readonly Resolver[] | null;
  readonly surroundings: Surroundings;
  /** Of the sandboxes that have one of their own, by the address they ask from. */
  readonly policies: ReadonlyMap<string, ResolvedPolicy>;
  /** Of the sandboxes whose connections are led to the proxy. They may hold values of secrets. */
  readonly proxied: ReadonlyMap<string, ProxySettings>;
  /** What sandboxes were told of names before. */
  readonly pins: ReadonlyMap<string, readonly Pin[]>;
}

/** What a sandbox has been told about a name. */
export interface Pin {
  readonly name: string;
  readonly address: Address;
  /** How long it holds from now on. */
  readonly seconds: number;
}

/** What the engine tells an egress process later. */
export type EgressOrder =
  /** Answered with `known`: what the sandbox has resolved at that moment. null: the sandbox is gone, or has the default. */
  | {
      readonly kind: 'setPolicy';
      readonly id: number;
      readonly client: string;
      readonly policy: ResolvedPolicy | null;
      /** They may hold values of secrets. null: nothing of the sandbox is led to the proxy. */
      readonly settings: ProxySettings | null;
    }
  /** Answered with `known`. */
  | { readonly kind: 'tellKnown'; readonly id: number; readonly client: string }
  /** The sandbox with that address is gone. */
  | { readonly kind: 'forget'; readonly client: string }
  | { readonly kind: 'setSurroundings'; readonly surroundings: Surroundings }
  /** The next engine will find it. */
  | { readonly kind: 'recorded' }
  | { readonly kind: 'pinned'; readonly id: number; readonly done: boolean };

/** What an egress process tells the engine. */
export type EgressReport =
  | {
      readonly kind: 'listening';
      readonly port: number;
      /** Where connections that sandboxes open to others can be led. */
      readonly proxyPorts: ProxyPorts;
    }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'known'; readonly id: number; readonly pins: readonly Pin[] }
  /** The packet filter must know these before the sandbox does. Answered with `pinned`. */
  | { readonly kind: 'pin'; readonly id: number; readonly client: string; readonly pins: readonly Pin[] }
  /** What was decided about what the sandbox with that address does. Not everything is told of. */
  | { readonly kind: 'decided'; readonly client: string; readonly report: NetworkReport };

/** Where connections can be led, by the family that they speak. */
export interface ProxyPorts {
  readonly ipv4: number;
  readonly ipv6: number | null;
}

/** Where an egress process finds the sockets of its proxy; Node's channel to the engine is the one before them. */
export const LISTENER_DESCRIPTORS = { ipv4: 4, ipv6: 5 } as const;
