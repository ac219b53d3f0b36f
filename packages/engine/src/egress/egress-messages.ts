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
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'failed'; readonly reason: string };
