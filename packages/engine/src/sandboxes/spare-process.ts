import { isDeepStrictEqual } from 'node:util';
import { ChannelClient } from '@svc/contract/channel';
import type { SpareProcess } from '../client/engine-api.ts';
import { socketTransport } from '../guest/socket-transport.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { isIntercepted } from '../policy/read-ports.ts';
import type { EngineRecord } from './record.ts';
import type { Run } from './run.ts';

/** Ends by itself, and most images have it. */
const FIRST_PROCESS = { cmd: '/bin/sh', args: ['-c', ':'] };
/** A caller may wait for it. */
const FIRST_TIMEOUT_MS = 1_000;

/**
 * Lets gVisor's kernel start a process, so that the caller's first one is its second: that finds the host's process which it runs in,
 * and the pages of the loader and the library (docs/decisions/0061-adaptive-warm-pool.md). Nothing of it is left.
 * @throws when it cannot start, as in an image without a shell, or does not end
 */
export async function startFirst(run: Run, signal: AbortSignal): Promise<void> {
  const given = AbortSignal.any([signal, AbortSignal.timeout(FIRST_TIMEOUT_MS)]);
  await withSession(run, given, async (client) => {
    // SAFETY: the program runs inside the sandbox, as its user; it is the image's own, and is given no words of anybody's.
    await client.run(FIRST_PROCESS, { maxOutputBytes: 0, signal: given });
  }).finally(() => run.rest());
}

/** Starts a process for whoever gets the sandbox. @throws when it cannot start, as a program that the image lacks */
export async function startSpare(
  run: Run,
  { key, cmd, args, stdinFd }: SpareProcess,
  signal: AbortSignal,
): Promise<void> {
  await withSession(run, signal, async (client) => {
    // SAFETY: the program runs inside the sandbox, as its user; no shell is involved.
    const request = { key, cmd, args: [...args], stdin: true, stdinFd, timeoutMs: null };
    await client.detached.start({ ...request, isRepeat: true, isSpare: true }, signal);
  }).finally(() => run.restLater());
}

/** What is started over it and is not detached ends with it. */
async function withSession(
  run: Run,
  signal: AbortSignal,
  work: (client: ChannelClient) => Promise<unknown>,
): Promise<void> {
  const { link } = run;
  const session = await link.takeSession(signal);
  try {
    const client = await ChannelClient.connect(socketTransport(session.socket), { signal });
    await work(client);
    client.close();
  } finally {
    link.drop(session);
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
