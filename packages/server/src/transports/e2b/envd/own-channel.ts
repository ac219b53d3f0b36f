import { onAbort } from '@svc/contract/async';
import type { ChannelClient } from '@svc/contract';
import type { EnvdCall } from './envd-call.ts';

const OPEN_MS = 10_000;

/** A connection for one reader, which delays no other call when it is slow. It ends with the caller. */
export interface OwnChannel {
  readonly channel: ChannelClient;
  close(): void;
  /** Leaves it to the next reader instead: everything that was asked for over it was read to its end. */
  keep(): void;
}

export async function openOwn(call: EnvdCall): Promise<OwnChannel> {
  const { parts, sandboxId } = call;
  const signal = AbortSignal.any([call.signal, AbortSignal.timeout(OPEN_MS)]);
  const channel = parts.readers.take(sandboxId) ?? (await parts.openChannel(sandboxId, signal));
  const stopListening = onAbort(call.signal, () => channel.close());
  if (call.signal.aborted) channel.close();
  let isLeft = false;
  const leave = (toDo: () => void) => () => {
    if (isLeft) return;
    isLeft = true;
    stopListening();
    toDo();
  };
  return {
    channel,
    close: leave(() => channel.close()),
    keep: leave(() => parts.readers.keep(sandboxId, channel)),
  };
}

/** Closes the connection after this time, unless it is disposed of before. */
export function closeAfter(
  { channel }: OwnChannel,
  timeoutMs: number | null,
): Disposable & { isOver(): boolean } {
  let isOver = false;
  const end = () => {
    isOver = true;
    channel.close();
  };
  const timer = timeoutMs === null ? undefined : setTimeout(end, timeoutMs);
  return { isOver: () => isOver, [Symbol.dispose]: () => clearTimeout(timer) };
}
