import { randomUUID } from 'node:crypto';
import { ChannelError, PlatformError, type ChannelClient, type DetachedRequest } from '@svc/contract';
import type { Process, StartProcessRequest } from '@svc/contract/rest';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { ChannelPool } from '../../orchestrator/channel-pool.ts';
import type { ProcessReconciler } from '../../processes/process-reconciler.ts';
import { requireSandbox } from '../sandboxes/rest-sandboxes.ts';
import type { Database } from '../../store/database.ts';
import {
  findOpenRun,
  findProcess,
  forgetEnded,
  insertProcess,
  noteProcess,
  removeProcess,
  type ProcessRecord,
} from '../../store/processes.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { isUniqueViolation } from '../../store/unique-violation.ts';
import { boundedBy, explainFailure } from '../../processes/explain-failure.ts';
import { toProcessView } from '../../processes/process-view.ts';
import { auditedCommand, shownCommand } from '../../processes/shown-command.ts';

/** Limit of records of ended processes per sandbox, the same as svc-init's. */
const MAX_ENDED = 1024;
const MS_PER_SECOND = 1000;

export interface StartParts {
  readonly database: Database;
  /** For calls that read their answers at once. */
  readonly channels: ChannelPool;
  readonly processReconciler: ProcessReconciler;
}

/**
 * Starts a process in a sandbox. The record is written first: a server that is killed in between leaves a record that is corrected or
 * removed at the next look at the sandbox, never a process without a record. Under an idempotency key the id is derived from the key,
 * and the sandbox knows the process by it, so that a repeated call finds the process that was started.
 */
export async function startProcess(
  parts: StartParts,
  call: RestCall,
  sandboxId: string,
  body: StartProcessRequest,
): Promise<Process> {
  const { database, channels, processReconciler } = parts;
  const sandbox = await requireSandbox(database, call, { id: sandboxId });
  const id = call.work === null ? randomUUID() : toUuid(call.work.id);
  const isRepeat = call.work?.isRepeat ?? false;
  const known = isRepeat ? await findProcess(database, sandbox.id, id) : undefined;
  if (known !== undefined && (known.pid !== null || known.exit !== null)) return toProcessView(known);
  const run = await findOpenRun(database, sandbox.id);
  // If it ran, it was in an earlier run of the sandbox.
  if (known !== undefined && known.runId !== run?.id) {
    return toProcessView((await processReconciler.find(sandbox.id, id)) ?? known);
  }
  if (run === undefined) throw notRunning(sandbox);
  const channel = await channels.get(sandbox.id);
  // The name of an ended process is free.
  if (typeof body.name === 'string') await processReconciler.refresh(sandbox.id);
  const record = known ?? newRecord(sandbox, { id, runId: run.id }, body);
  if (known === undefined) await writeDown(call, sandbox, record, body);
  const request = { ...toRequest(record.id, body), isRepeat };
  const { pid, startedAtMs } = await start(database, channel, request, boundedBy(call.signal));
  const started = { ...record, pid, startedAt: new Date(startedAtMs).toISOString() };
  return toProcessView(
    await call.commit(async ({ db }) => {
      await noteProcess(db, record.id, { pid, startedAt: started.startedAt });
      await forgetEnded(db, sandbox.id, MAX_ENDED);
      return started;
    }, toProcessView),
  );
}

/** 32 hexadecimal digits as a UUID of version 8, whose bits are defined by its maker. */
function toUuid(digits: string): string {
  const variant = ((Number.parseInt(digits.charAt(16), 16) & 3) | 8).toString(16);
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `${variant}${digits.slice(17, 20)}`,
    digits.slice(20),
  ].join('-');
}

function newRecord(
  sandbox: SandboxRecord,
  { id, runId }: Pick<ProcessRecord, 'id' | 'runId'>,
  body: StartProcessRequest,
): ProcessRecord {
  return {
    id,
    organizationId: sandbox.organizationId,
    sandboxId: sandbox.id,
    runId,
    name: body.name ?? null,
    pid: null,
    command: shownCommand([body.cmd, ...(body.args ?? [])]),
    isTty: body.tty ?? false,
    startedAt: new Date().toISOString(),
    endedAt: null,
    exit: null,
    stdoutBytes: 0,
    stderrBytes: 0,
  };
}

async function writeDown(
  call: RestCall,
  sandbox: SandboxRecord,
  process: ProcessRecord,
  body: StartProcessRequest,
): Promise<void> {
  const payload = {
    sandbox_id: sandbox.id,
    sandbox_name: sandbox.name,
    process_id: process.id,
    name: process.name,
    command: auditedCommand([body.cmd, ...(body.args ?? [])]),
    user: body.user ?? null,
    tty: process.isTty,
  };
  try {
    await call.commit(async ({ db, record }) => {
      await insertProcess(db, process);
      await record({ type: 'exec_started', category: 'exec', payload });
    });
  } catch (error) {
    if (isUniqueViolation(error)) throw nameTaken(process.name ?? '', error);
    throw error;
  }
}

async function start(
  database: Database,
  channel: ChannelClient,
  request: DetachedRequest,
  signal: AbortSignal,
) {
  try {
    return await channel.detached.start(request, signal);
  } catch (error) {
    // Whether it runs is unknown when the connection broke or the caller disconnected; otherwise it does not.
    const isUnknown = signal.aborted || (error instanceof ChannelError && !isRefused(error));
    if (!isUnknown) await removeProcess(database, request.key);
    throw explainFailure(error, { process: request.cmd });
  }
}

/** False when an earlier call is just starting it in the sandbox. */
function isRefused({ kind, refusal }: ChannelError): boolean {
  return kind === 'refused' && refusal !== 'resource_limit';
}

function toRequest(key: string, body: StartProcessRequest): DetachedRequest {
  const { cmd, args, env, cwd, user, tty, rows, cols, stdin, rlimits } = body;
  return {
    key,
    cmd,
    ...(args === undefined ? {} : { args }),
    ...(env === undefined ? {} : { env }),
    cwd: cwd ?? null,
    user: user ?? null,
    tty: tty ?? false,
    ...(rows === undefined ? {} : { rows }),
    ...(cols === undefined ? {} : { cols }),
    stdin: stdin ?? false,
    ...(rlimits === undefined ? {} : { rlimits }),
    timeoutMs: typeof body.timeout_secs === 'number' ? body.timeout_secs * MS_PER_SECOND : null,
    outputMax: body.max_output_bytes ?? null,
    ...(body.output_buffer_bytes === undefined ? {} : { ringBytes: body.output_buffer_bytes }),
  };
}

function notRunning({ name, observed }: SandboxRecord): PlatformError {
  const message = `Sandbox '${name}' is ${observed}; start it first`;
  return new PlatformError('sandbox_not_running', message, { details: { state: observed } });
}

function nameTaken(name: string, cause: unknown): PlatformError {
  const message = `A process named '${name}' runs in this sandbox; choose another name, or end that one first`;
  return new PlatformError('name_already_exists', message, { details: { field: 'name', name }, cause });
}
