import type { ChannelClient } from '@svc/contract';
import type { EnvdCall } from './envd-call.ts';

const OPEN_MS = 10_000;

/** A connection for one reader, which delays no other call when it is slow. It ends with the caller. */
export async function openOwn(call: EnvdCall): Promise<ChannelClient> {
  const signal = AbortSignal.any([call.signal, AbortSignal.timeout(OPEN_MS)]);
  const channel = await call.parts.openChannel(call.sandboxId, signal);
  if (call.signal.aborted) channel.close();
  call.signal.addEventListener('abort', () => channel.close(), { once: true });
  return channel;
}

/** Closes the connection after this time, unless it is disposed of before. */
export function closeAfter(
  channel: ChannelClient,
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
