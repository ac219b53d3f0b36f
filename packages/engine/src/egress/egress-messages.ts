import type { ProxySettings } from './proxied-sandboxes.ts';
import type { Resolver } from './resolvers.ts';
import type { Violation } from './secrets/blocked-request.ts';

/** What the engine tells an egress process, once, over the channel that Node opens between them. */
export interface EgressConfig {
  readonly listenAddress: string;
  /** Host id to run as; no account and no sandbox has it. */
  readonly hostId: number;
  /** null = the resolvers of this host. */
  readonly resolvers: readonly Resolver[] | null;
}

/** What the engine tells an egress process later, about the sandbox with that address. It may hold values of secrets. */
export interface ProxyOrder {
  readonly kind: 'setProxy';
  readonly client: string;
  /** null: the sandbox is gone, or nothing of it is proxied. */
  readonly settings: ProxySettings | null;
}

/** What an egress process tells the engine. */
export type EgressReport =
  | {
      readonly kind: 'listening';
      readonly port: number;
      /** Where connections that sandboxes open to others can be led. */
      readonly proxyPort: number;
    }
  | { readonly kind: 'failed'; readonly reason: string }
  /** A request of the sandbox with that address was stopped. */
  | { readonly kind: 'violation'; readonly client: string; readonly violation: Violation };

/** Where an egress process finds the socket of its proxy; Node's channel to the engine is the one before it. */
export const LISTENER_DESCRIPTOR = 4;
