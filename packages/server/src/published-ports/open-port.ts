import type { ChannelClient } from '@svc/contract';
import type { Logger } from 'pino';

/** Where a port leads, and how to get there. */
export interface PortTarget {
  readonly sandboxId: string;
  readonly guestPort: number;
  readonly openChannel: () => Promise<ChannelClient>;
  readonly logger: Logger;
  /** Whether the policy of the sandbox lets somebody at this address in. */
  readonly mayEnter: (source: string) => boolean;
}

/** A port of this host that is open. */
export interface OpenPort {
  /** Resolves when it is free again; what went through it has ended. */
  close(): Promise<void>;
}
