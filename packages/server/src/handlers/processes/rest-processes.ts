import { PlatformError, type ChannelClient } from '@svc/contract';
import { badField } from '../../dispatch/rest-dispatch.ts';
import { boundedBy, explainFailure } from '../../processes/explain-failure.ts';
import { followOutput } from '../../processes/follow-output.ts';
import { labelOf, signalNumber } from '../../processes/describe-exit.ts';
import { OutputCursor, type OutputSelection } from '../../processes/output-cursor.ts';
import { processNotFound, toProcessView } from '../../processes/process-view.ts';
import { Readers } from '../../processes/readers.ts';
import { startProcess, type StartParts } from './start-process.ts';
import { StdinWriter } from '../../processes/write-stdin.ts';
import { findProcess, listProcesses, removeProcess, type ProcessRecord } from '../../store/processes.ts';
import { readPage, toPage } from '../../dispatch/paging.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import { requireSandbox } from '../sandboxes/rest-sandboxes.ts';

type ProcessHandlers = Pick<RestHandlers, Extract<keyof RestHandlers, `processes.${string}`>>;

interface ProcessParams {
  readonly sandbox_id: string;
  readonly process_id: string;
}

const LIST = 'processes';
/** Limit of a name in an event and in the sandbox. */
const MAX_LABEL_LENGTH = 64;

export interface ProcessParts extends StartParts {
  readonly orchestrator: Pick<Orchestrator, 'openChannel'>;
}

export function processHandlers(parts: ProcessParts): ProcessHandlers {
  const stdin = new StdinWriter();
  const readers = new Readers();
  return {
    ...readHandlers(parts),
    'processes.start': ({ params, body }, call) => startProcess(parts, call, params.sandbox_id, body),
    'processes.remove': ({ params }, call) => remove(parts, call, params),
    'processes.signal': ({ params, body }, call) => signal(parts, call, params, body.signal),
    'processes.resize': async ({ params, body }, call) => {
      const process = await requireRunning(parts, call, params);
      await onChannel(parts, process, ({ detached }) =>
        detached.resize(process.id, body.rows, body.cols, boundedBy(call.signal)),
      );
      return toProcessView(process);
    },
    'processes.writeStdin': async ({ params, query, body }, call) => {
      const { work } = call;
      // Input that a repeated call has written before may have ended the process since.
      const process =
        work?.isRepeat === true
          ? await requireProcess(parts, call, params, 'findReachable')
          : await requireRunning(parts, call, params);
      const isLast = query.close ?? false;
      const write = { content: body, isLast, signal: call.signal, name: work?.id ?? null };
      return await onChannel(parts, process, (channel) => stdin.write(channel, process.id, write));
    },
    'processes.output': async ({ params, query, headers }, call) => {
      const { stream = 'output', offset, follow = false } = query;
      const cursor = readCursor(stream, headers['last-event-id'] ?? offset);
      const { process, isCurrent } = await listenTo(parts, call, params);
      if (isCurrent) requireWritten(process, cursor);
      const request = { process, cursor, isFollowing: follow, signal: call.signal };
      return readers.admit(process.sandboxId, () =>
        followOutput({ ...parts, reconciler: parts.processReconciler }, request),
      );
    },
  };
}

/** The number of written bytes is current when the sandbox was just asked, or has reported the end. */
async function listenTo(
  { database, processReconciler: reconciler }: ProcessParts,
  call: RestCall,
  params: ProcessParams,
): Promise<{ readonly process: ProcessRecord; readonly isCurrent: boolean }> {
  const { id } = await requireSandbox(database, call, { id: params.sandbox_id });
  const known = await findProcess(database, id, params.process_id);
  if (known === undefined) throw processNotFound(params.process_id);
  const wasAsked = known.exit === null && (await reconciler.refreshForReading(id, known.id));
  const process = known.exit === null ? await findProcess(database, id, known.id) : known;
  if (process === undefined) throw processNotFound(params.process_id);
  const { exit } = process;
  const isSeenEnd = exit !== null && (exit.code !== null || exit.signal !== null);
  return { process, isCurrent: exit === null ? wasAsked : isSeenEnd };
}

function readHandlers({
  database,
  processReconciler: reconciler,
}: ProcessParts): Pick<ProcessHandlers, 'processes.list' | 'processes.get'> {
  return {
    'processes.list': async ({ params, query }, call) => {
      const page = readPage(query, LIST, 2);
      const { id } = await requireSandbox(database, call, { id: params.sandbox_id });
      await reconciler.refresh(id);
      const rows = await listProcesses(database, id, page, query.status);
      return toPage(rows, page, LIST, (row) => [row.startedAt, row.id], toProcessView);
    },
    'processes.get': async ({ params }, call) => {
      return toProcessView(await requireProcess({ database, processReconciler: reconciler }, call, params));
    },
  };
}

async function remove(parts: ProcessParts, call: RestCall, params: ProcessParams) {
  const process = await requireProcess(parts, call, params, 'findReachable');
  const name = process.name ?? process.id;
  const respond = () => ({ message: `Process ${name} was removed` });
  if (process.exit === null) await forget(parts, process, call.signal);
  // Only frees memory in the sandbox, which may be gone.
  else await forget(parts, process, call.signal).catch(() => undefined);
  await call.commit(async ({ db, record }) => {
    await removeProcess(db, process.id);
    await record({ type: 'process_removed', category: 'exec', payload: describe(process) });
  }, respond);
  return respond();
}

async function forget(parts: ProcessParts, process: ProcessRecord, signal: AbortSignal): Promise<void> {
  try {
    await onChannel(parts, process, ({ detached }) => detached.forget(process.id, boundedBy(signal)));
  } catch (error) {
    // It has ended already.
    if (!PlatformError.is(error, 'invalid_state_transition')) throw error;
  }
}

async function signal(parts: ProcessParts, call: RestCall, params: ProcessParams, asked: number | string) {
  const number = signalNumber(asked);
  if (number === undefined)
    throw badField('signal', `must be a signal of Linux, such as SIGTERM; not ${asked}`);
  const process = await requireRunning(parts, call, params);
  const by = labelOf(call.actor).slice(0, MAX_LABEL_LENGTH).toWellFormed();
  await onChannel(parts, process, ({ detached }) =>
    detached.signal(process.id, number, by, boundedBy(call.signal)),
  );
  const payload = { ...describe(process), signal: number };
  await call.commit(
    ({ record }) => record({ type: 'process_signalled', category: 'exec', payload }),
    () => toProcessView(process),
  );
  return toProcessView(process);
}

function describe({ id, sandboxId, name }: ProcessRecord) {
  return { process_id: id, sandbox_id: sandboxId, name };
}

/** The current record, as far as the sandbox can be asked; with `findReachable` it must be. */
async function requireProcess(
  { database, processReconciler: reconciler }: Pick<ProcessParts, 'database' | 'processReconciler'>,
  call: Pick<RestCall, 'organization'>,
  params: ProcessParams,
  how: 'find' | 'findReachable' = 'find',
): Promise<ProcessRecord> {
  const { id } = await requireSandbox(database, call, { id: params.sandbox_id });
  const known = await findProcess(database, id, params.process_id);
  const process = known?.exit === null ? await reconciler[how](id, known.id) : known;
  if (process === undefined) throw processNotFound(params.process_id);
  return process;
}

async function requireRunning(
  parts: ProcessParts,
  call: Pick<RestCall, 'organization'>,
  params: ProcessParams,
): Promise<ProcessRecord> {
  const process = await requireProcess(parts, call, params, 'findReachable');
  const { exit } = process;
  if (exit === null) return process;
  const message = `Process ${params.process_id} has ended: ${exit.message}; start it again`;
  throw new PlatformError('invalid_state_transition', message, { details: { reason: exit.reason } });
}

async function onChannel<T>(
  { channels }: ProcessParts,
  process: ProcessRecord,
  work: (channel: ChannelClient) => Promise<T>,
): Promise<T> {
  const channel = await channels.get(process.sandboxId);
  try {
    return await work(channel);
  } catch (error) {
    throw explainFailure(error, { process: process.name ?? process.id });
  }
}

function readCursor(stream: OutputSelection, text: string | undefined): OutputCursor {
  if (text !== undefined && !OutputCursor.isFor(stream, text)) {
    const form =
      stream === 'output' ? 'N-M, the offsets in stdout and stderr' : 'N, the offset in the stream';
    throw badField('offset', `must be ${form}`);
  }
  return new OutputCursor(stream, text);
}

function requireWritten(process: ProcessRecord, cursor: OutputCursor): void {
  const written = { stdout: process.stdoutBytes, stderr: process.stderrBytes };
  for (const stream of cursor.streams) {
    if (cursor.nextOf(stream) <= written[stream]) continue;
    throw badField('offset', `is beyond what was written to ${stream}: ${written[stream]} bytes`);
  }
}
