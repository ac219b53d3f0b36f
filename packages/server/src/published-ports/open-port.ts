import type { ChannelClient } from '@svc/contract';
import type { Logger } from 'pino';

/** The target of a published port. */
export interface PortTarget {
  readonly sandboxId: string;
  readonly guestPort: number;
  readonly openChannel: () => Promise<ChannelClient>;
  readonly logger: Logger;
  /** Whether the sandbox's policy lets this address in. */
  readonly mayEnter: (source: string) => boolean;
}

/** An open port of this host. */
export interface OpenPort {
  /** Resolves when the port is free again and its connections have ended. */
  close(): Promise<void>;
}
