import type { Resolver } from './resolvers.ts';

/** What the engine tells an egress process, once, over the channel that Node opens between them. */
export interface EgressConfig {
  readonly listenAddress: string;
  /** Host id to run as; no account and no sandbox has it. */
  readonly hostId: number;
  /** null = the resolvers of this host. */
  readonly resolvers: readonly Resolver[] | null;
}

/** What an egress process tells the engine. */
export type EgressReport =
  | {
      readonly kind: 'listening';
      readonly port: number;
      /** Where connections that sandboxes open to others can be led. */
      readonly proxyPort: number;
    }
  | { readonly kind: 'failed'; readonly reason: string };

/** Where an egress process finds the socket of its proxy; Node's channel to the engine is the one before it. */
export const LISTENER_DESCRIPTOR = 4;
