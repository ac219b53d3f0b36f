import { isDeepStrictEqual } from 'node:util';
import { ChannelClient } from '@svc/contract/channel';
import type { SpareProcess } from '../client/engine-api.ts';
import { socketTransport } from '../guest/socket-transport.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { isIntercepted } from '../policy/read-ports.ts';
import type { EngineRecord } from './record.ts';
import type { Run } from './run.ts';

/** Starts a process for whoever gets the sandbox. @throws when it cannot start, as a program that the image lacks */
export async function startSpare(
  run: Run,
  { key, cmd, args, stdinFd }: SpareProcess,
  signal: AbortSignal,
): Promise<void> {
  const { link } = run;
  run.wake();
  const session = await link.takeSession(signal);
  try {
    const client = await ChannelClient.connect(socketTransport(session.socket), { signal });
    // SAFETY: the program runs inside the sandbox, as its user; no shell is involved.
    const request = { key, cmd, args: [...args], stdin: true, stdinFd, timeoutMs: null };
    await client.detached.start({ ...request, isRepeat: true, isSpare: true }, signal);
    client.close();
  } finally {
    link.drop(session);
    run.rest();
  }
}

/**
 * Whether what was started while the sandbox waited is what its caller would have started: it may have read files that patches change,
 * found its program where scripts come first, and connected where the caller's policy does not let it. What processes start from
 * (environment, user, folder) is compared by whoever configures the sandbox.
 */
export function keepsSpares({ spec: before }: EngineRecord, { spec }: EngineRecord): boolean {
  return (
    (spec.patches ?? []).length === 0 &&
    Object.keys(spec.runtime?.scripts ?? {}).length === 0 &&
    !isIntercepted(spec.network) &&
    isDeepStrictEqual(resolvePolicy(spec.network), resolvePolicy(before.network))
  );
}
