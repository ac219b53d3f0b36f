import { isDeepStrictEqual } from 'node:util';
import { ChannelClient } from '@svc/contract/channel';
import type { SpareProcess } from '@svc/contract/orchestrator';
import { socketTransport } from '@svc/contract/node-socket-transport';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { isIntercepted } from '../policy/read-ports.ts';
import type { EngineRecord } from './record.ts';
import type { Run } from './run.ts';

/** A command that most images have and that exits at once. */
const FIRST_PROCESS = { cmd: '/bin/sh', args: ['-c', ':'] };
/** Short, because a caller may wait for it. */
const FIRST_TIMEOUT_MS = 1_000;

/**
 * Starts a first process in gVisor, so that the caller's first one is the second and finds the host's process ready and the pages of the
 * loader and the library in memory (docs/decisions/0061-adaptive-warm-pool.md). It leaves nothing behind.
 * @throws when it cannot start, as in an image without a shell, or does not end
 */
export async function startFirst(run: Run, signal: AbortSignal): Promise<void> {
  const given = AbortSignal.any([signal, AbortSignal.timeout(FIRST_TIMEOUT_MS)]);
  await withSession(run, given, async (client) => {
    // SAFETY: the program runs inside the sandbox, as its user; it is part of the image, and its arguments are constant.
    await client.run(FIRST_PROCESS, { maxOutputBytes: 0, signal: given });
  }).finally(() => run.rest());
}

/** Starts a process ahead, for the future caller. @throws when it cannot start, for instance because the image lacks the program */
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

/** Processes started over the session that are not detached end with it. */
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
 * Whether the caller can use the processes that were started ahead: they may have read files that patches change, found their program where
 * scripts come first, or opened connections that the caller's policy forbids. The configuration of processes (environment, user, folder) is
 * compared by `configureAgain`.
 */
export function keepsSpares({ spec: before }: EngineRecord, { spec }: EngineRecord): boolean {
  return (
    (spec.patches ?? []).length === 0 &&
    Object.keys(spec.runtime?.scripts ?? {}).length === 0 &&
    !isIntercepted(spec.network) &&
    isDeepStrictEqual(resolvePolicy(spec.network), resolvePolicy(before.network))
  );
}
