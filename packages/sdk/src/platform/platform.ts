import type { ByteTransport } from '@svc/contract/channel';
import type { SvcError } from '../svc-error.ts';

/**
 * How a channel is opened. `#platform` is Node's or the browser's way: both export `dial`, `dialAhead`, `isDirect`,
 * `platformFetch`, `readEnvironment` and `USER_AGENT`.
 */
export interface DialRequest {
  /** Of the channel, `ws:` or `wss:`. */
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly signal: AbortSignal;
  /** Where the platform does not say why it was refused: asks the control plane. Null when it sees no reason. */
  readonly describeRefusal: () => Promise<SvcError | null>;
}

/** A transport that can be kept open without keeping the program running. */
export interface DialledTransport extends ByteTransport {
  /** An idle connection does not keep the program from ending. */
  setInUse(isInUse: boolean): void;
}
