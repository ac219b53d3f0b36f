import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Authority } from '../../../access/authorize-rest.ts';
import type { FairLimit } from '../../../access/fair-limit.ts';
import type { RestDispatch } from '../../../dispatch/rest-dispatch.ts';
import type { GuestFiles } from '../../../files/guest-files.ts';
import type { FileTransfers } from '../../../handlers/files/file-transfers.ts';
import type { PreviewAddresses } from '../../../handlers/previews/preview-place.ts';
import type { ChannelPool } from '../../../orchestrator/channel-pool.ts';
import type { OpenChannel } from '../../../sandboxes/open-channel.ts';
import type { Database } from '../../../store/database.ts';
import type { EventQueue } from '../../channel/event-queue.ts';
import { claimConnection } from '../../http/connection-limit.ts';
import type { RateLimiter } from '../../http/rate-limiter.ts';
import type { ReaderChannels } from './reader-channels.ts';
import type { Watchers } from './watchers.ts';
import type { SandboxTokens } from './sandbox-tokens.ts';

export interface E2bParts {
  readonly database: Database;
  readonly dispatch: RestDispatch;
  /** Shared connections, for calls that read their answers at once. */
  readonly channels: ChannelPool;
  readonly files: GuestFiles;
  readonly transfers: FileTransfers;
  /** Connections of their own, for readers that may be slow. */
  readonly openChannel: OpenChannel;
  readonly tokens: SandboxTokens;
  /** Null: ports of sandboxes have no addresses. */
  readonly previews: PreviewAddresses | null;
  /** Ports of a sandbox whose client does not say who may reach them. */
  readonly arePortsPublic: boolean;
  readonly rateLimiter: RateLimiter | null;
  readonly calls: FairLimit;
  readonly streams: FairLimit;
  readonly events: EventQueue;
  readonly watchers: Watchers;
  readonly readers: ReaderChannels;
  readonly maxBodyBytes: number;
  readonly maxBodyPauseMs: number;
  readonly logger: Logger;
}

/** Counts a request to the share of its organization. @throws PlatformError `rate_limited`, `unavailable` */
export function admitCall(
  { rateLimiter, calls }: Pick<E2bParts, 'rateLimiter' | 'calls'>,
  {
    authority,
    request,
    reply,
  }: { readonly authority: Authority; readonly request: FastifyRequest; readonly reply: FastifyReply },
): void {
  const owner = authority.organization?.slug ?? `address ${request.ip}`;
  rateLimiter?.take(owner, reply);
  const shareOwner = authority.isOperator ? null : owner;
  reply.raw.once('close', calls.enter(shareOwner));
  claimConnection(request.socket, shareOwner);
}
