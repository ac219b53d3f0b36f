import { setTimeout as delay } from 'node:timers/promises';
import { onAbort } from '@svc/contract/async';
import {
  ChannelError,
  PlatformError,
  type ChannelClient,
  type DetachedEvent,
  type DetachedState,
  type ErrorCode,
} from '@svc/contract';
import type { ServerEvent } from '@svc/contract/rest';
import { abortable } from '@svc/contract/async';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import type { Database } from '../store/database.ts';
import { noteProcess, type ProcessRecord } from '../store/processes.ts';
import { ANSWER_MS, explainFailure, isTimeout } from './explain-failure.ts';
import type { OutputCursor } from './output-cursor.ts';
import { changeOf, type ProcessReconciler } from './process-reconciler.ts';
import { processNotFound, toProcessView } from './process-view.ts';

/** How long a reader waits while its sandbox cannot be reached; a restart of the engine takes less. */
const RECONNECT_TIMEOUT_MS = 60_000;
const RETRY_MS = 100;
const OPEN_MS = 10_000;

export interface FollowParts {
  readonly database: Database;
  readonly orchestrator: Pick<Orchestrator, 'openChannel'>;
  readonly reconciler: ProcessReconciler;
}

export interface FollowRequest {
  readonly process: ProcessRecord;
  readonly cursor: OutputCursor;
  readonly isFollowing: boolean;
  readonly signal: AbortSignal;
}

/**
 * The output of a process from a cursor on, each byte once and in order, over a channel of its own: a slow reader blocks only the
 * process itself. After a restart of the engine it reconnects and continues where it was. The last event reports the state of the
 * process.
 */
export async function* followOutput(parts: FollowParts, request: FollowRequest): AsyncGenerator<ServerEvent> {
  const { process, cursor, signal } = request;
  let troubleSince: number | undefined;
  while (!signal.aborted) {
    let isGone = false;
    try {
      const channel = await openChannel(parts, request);
      // A follower of a quiet process gets no data for long, so an open channel counts as the end of the trouble. Other requests are
      // answered at once, and their trouble ends with the answer.
      if (request.isFollowing) troubleSince = undefined;
      const end = yield* readOn(channel, request);
      const known = await note(parts, process, end);
      // The reason of a process that ended with its sandbox is the sandbox's, which is known in a moment.
      isGone = end.end !== null && known.exit === null;
      if (!isGone) return yield endEvent(known);
    } catch (error) {
      if (signal.aborted) break;
      troubleSince ??= Date.now();
      if (!isTransient(error) || Date.now() - troubleSince > RECONNECT_TIMEOUT_MS) throw error;
      isGone = isUnreachable(error);
    }
    const known = await parts.reconciler.find(process.sandboxId, process.id);
    if (known === undefined) throw processNotFound(process.id);
    if (known.exit !== null && isGone) return yield* reportLoss(known, cursor);
    await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
  }
  return undefined;
}

async function openChannel(
  { orchestrator }: FollowParts,
  { process, signal }: FollowRequest,
): Promise<ChannelClient> {
  const deadline = AbortSignal.timeout(OPEN_MS);
  try {
    return await orchestrator.openChannel(process.sandboxId, AbortSignal.any([signal, deadline]));
  } catch (error) {
    if (!deadline.aborted) throw error;
    const message = 'the sandbox does not answer on its channel; try again';
    throw new PlatformError('unavailable', message, { cause: error });
  }
}

/** Reads over one channel; returns the state of the process at its end. */
async function* readOn(
  channel: ChannelClient,
  { process, cursor, isFollowing, signal }: FollowRequest,
): AsyncGenerator<ServerEvent, DetachedState> {
  const stopListening = onAbort(signal, () => channel.close());
  try {
    signal.throwIfAborted();
    const events = channel.detached.read(process.id, { ...cursor.offsets, follow: isFollowing });
    for (;;) {
      const next = await (isFollowing ? events.next() : soon(events.next(), process.id));
      if (next.done === true) break;
      const event = next.value;
      if (event.type === 'end') return event.state;
      cursor.pass(event);
      yield toServerEvent(event, cursor);
    }
    throw new ChannelError('protocol', 'The sandbox ended the output without an end');
  } finally {
    stopListening();
    channel.close();
  }
}

/** @throws PlatformError `unavailable` when the sandbox does not answer in time */
async function soon<T>(answer: Promise<T>, process: string): Promise<T> {
  return await abortable(answer, AbortSignal.timeout(ANSWER_MS)).catch((error: unknown) => {
    throw isTimeout(error) ? explainFailure(error, { process }) : error;
  });
}

async function note(
  { database }: FollowParts,
  process: ProcessRecord,
  state: DetachedState,
): Promise<ProcessRecord> {
  const change = changeOf(process, state);
  await noteProcess(database, process.id, change);
  return { ...process, ...change };
}

/** The process is over, and its output was dropped with its sandbox or for its age: the unread rest is lost. */
function* reportLoss(process: ProcessRecord, cursor: OutputCursor): Generator<ServerEvent> {
  const written = { stdout: process.stdoutBytes, stderr: process.stderrBytes };
  for (const stream of cursor.streams) {
    const [from, to] = [cursor.nextOf(stream), written[stream]];
    if (from >= to) continue;
    const dropped = { type: 'dropped', stream, from, to } as const;
    cursor.pass(dropped);
    yield toServerEvent(dropped, cursor);
  }
  yield endEvent(process);
}

function endEvent(process: ProcessRecord): ServerEvent {
  return { event: 'end', data: toProcessView(process) };
}

function toServerEvent(event: Exclude<DetachedEvent, { type: 'end' }>, cursor: OutputCursor): ServerEvent {
  const id = cursor.toString();
  const { stream } = event;
  if (event.type === 'dropped') {
    return { event: 'dropped', id, data: { stream, from: event.from, to: event.to } };
  }
  const { buffer, byteOffset, length } = event.data;
  const data = Buffer.from(buffer, byteOffset, length).toString('base64');
  return { event: 'output', id, data: { stream, offset: event.offset, data } };
}

const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'unavailable',
  'orchestrator_unreachable',
  'sandbox_not_running',
  'sandbox_not_found',
]);

/** Errors that are transient, or that may turn out to be the end of the process. */
function isTransient(error: unknown): boolean {
  if (error instanceof ChannelError) return error.kind !== 'refused' || error.refusal === 'invalid_session';
  return PlatformError.is(error) && PASSING.has(error.code);
}

/** The sandbox does not know the process any more, or does not run itself. */
function isUnreachable(error: unknown): boolean {
  if (error instanceof ChannelError) return error.kind === 'refused';
  return PlatformError.is(error, 'sandbox_not_running') || PlatformError.is(error, 'sandbox_not_found');
}
