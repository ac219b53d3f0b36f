import { randomUUID } from 'node:crypto';
import { ChannelError, PlatformError, type ChannelClient, type DetachedRequest } from '@svc/contract';
import type { Process, StartProcessRequest } from '@svc/contract/rest';
import type { RestCall } from '../rest/rest-call.ts';
import type { RestParts } from '../rest/rest-parts.ts';
import { requireSandbox } from '../rest/sandboxes.ts';
import {
  findOpenRun,
  forgetEnded,
  insertProcess,
  noteProcess,
  removeProcess,
  type ProcessRecord,
} from '../store/processes.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';
import { isUniqueViolation } from '../store/unique-violation.ts';
import { boundedBy, explainFailure } from './explain-failure.ts';
import { toProcessView } from './process-view.ts';
import { auditedCommand, shownCommand } from './shown-command.ts';

/** Records of processes that ended, per sandbox. As many as svc-init keeps. */
const MAX_ENDED = 1024;
const MS_PER_SECOND = 1000;

/**
 * Starts a process in a sandbox. It is written down first: a server that is killed in between leaves a record that is put
 * right or removed when somebody looks at the sandbox, never a process that nobody knows of.
 */
export async function startProcess(
  parts: RestParts,
  call: RestCall,
  sandboxId: string,
  body: StartProcessRequest,
): Promise<Process> {
  const { database, channels, processKeeper } = parts;
  const sandbox = await requireSandbox(database, call, { id: sandboxId });
  const run = await findOpenRun(database, sandbox.id);
  if (run === undefined) throw notRunning(sandbox);
  const channel = await channels.get(sandbox.id);
  // The name of a process that has ended is free.
  if (typeof body.name === 'string') await processKeeper.refresh(sandbox.id);
  const record = newRecord(sandbox, run.id, body);
  await writeDown(call, sandbox, record, body);
  const { pid, startedAtMs } = await start(parts, channel, record, body, boundedBy(call.signal));
  const started = { ...record, pid, startedAt: new Date(startedAtMs).toISOString() };
  return toProcessView(
    await call.commit(async ({ db }) => {
      await noteProcess(db, record.id, { pid, startedAt: started.startedAt });
      await forgetEnded(db, sandbox.id, MAX_ENDED);
      return started;
    }, toProcessView),
  );
}

function newRecord(sandbox: SandboxRecord, runId: string, body: StartProcessRequest): ProcessRecord {
  return {
    id: randomUUID(),
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
  { database }: RestParts,
  channel: ChannelClient,
  record: ProcessRecord,
  body: StartProcessRequest,
  signal: AbortSignal,
) {
  try {
    return await channel.detached.start(toRequest(record.id, body), signal);
  } catch (error) {
    // Whether it runs is unknown when the connection broke, or nobody waits for the answer any more; else it does not.
    const isUnknown = signal.aborted || (error instanceof ChannelError && error.kind !== 'refused');
    if (!isUnknown) await removeProcess(database, record.id);
    throw explainFailure(error, { process: body.cmd });
  }
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
