import { timeoutMsOf } from '@svc/contract';
import type { WorkToolOutput } from '@svc/contract/mcp';
import type { Process } from '@svc/contract/rest';
import { toVariables } from '../../../processes/variables.ts';
import { latestOffset, readOutput, type ReadOutput } from './process-output.ts';
import { listText } from './list-text.ts';
import type { ToolAnswer, WorkToolHandlers } from './tool-answer.ts';
import type { ToolContext } from './tool-context.ts';

const MS_PER_SECOND = 1000;
const DEFAULT_WAIT_SECONDS = 60;
const DEFAULT_GRACE_SECONDS = 5;
/** A killed process ends sooner, unless its sandbox hangs. */
const KILL_WAIT_MS = 10_000;

type ProcessTools = Pick<
  WorkToolHandlers,
  Extract<keyof WorkToolHandlers, `sandbox_${string}_process${'' | 'es'}` | 'sandbox_read_output'>
>;

interface OfProcess {
  readonly sandbox_id: string;
  readonly process_id: string;
}

export function processTools(): ProcessTools {
  return {
    sandbox_start_process: async (input, context) => {
      const { command: cmd, args, envs, workdir, name, timeout } = input;
      const started = await context.rest('processes.start', {
        params: { sandbox_id: (await context.sandbox(input.sandbox)).id },
        body: {
          cmd,
          args: args ?? [],
          env: toVariables(envs ?? []),
          cwd: workdir ?? null,
          name: name ?? null,
          ...(typeof timeout === 'number'
            ? { timeout_secs: Math.ceil(timeoutMsOf(timeout) / MS_PER_SECOND) }
            : {}),
        },
      });
      return answerProcess(started);
    },
    sandbox_list_processes: async (input, context) => {
      const { limit, cursor, status } = input;
      const { data, next_cursor: next } = await context.rest('processes.list', {
        params: { sandbox_id: (await context.sandbox(input.sandbox)).id },
        query: {
          ...(typeof limit === 'number' ? { limit } : {}),
          ...(typeof cursor === 'string' ? { cursor } : {}),
          ...(typeof status === 'string' ? { status } : {}),
        },
      });
      return {
        structured: { processes: data.map(toView), next_cursor: next },
        text: listText(data.map(describeProcess), next, 'No background commands'),
      };
    },
    sandbox_read_output: async (input, context) => {
      const params = await paramsOf(context, input);
      return await answerOutput(context, params, input.offset);
    },
    sandbox_wait_process: async (input, context) => {
      const params = await paramsOf(context, input);
      await waitForEnd(context, params, (input.timeout ?? DEFAULT_WAIT_SECONDS) * MS_PER_SECOND);
      context.signal.throwIfAborted();
      return await answerOutput(context, params, input.offset);
    },
    sandbox_stop_process: async (input, context) => {
      const params = await paramsOf(context, input);
      const graceMs = (input.grace ?? DEFAULT_GRACE_SECONDS) * MS_PER_SECOND;
      return answerProcess(await stopProcess(context, params, graceMs));
    },
    sandbox_signal_process: async (input, context) => {
      const params = await paramsOf(context, input);
      const { signal } = input;
      return answerProcess(await context.rest('processes.signal', { params, body: { signal } }));
    },
  };
}

async function paramsOf(
  context: ToolContext,
  { sandbox, process }: { readonly sandbox: string; readonly process: string },
): Promise<OfProcess> {
  return { sandbox_id: (await context.sandbox(sandbox)).id, process_id: process };
}

async function stopProcess(context: ToolContext, params: OfProcess, graceMs: number): Promise<Process> {
  const found = await context.rest('processes.get', { params });
  // By id from here on, because another process of this name may be started meanwhile.
  const own = { ...params, process_id: found.id };
  for (const [signal, waitMs] of [
    ['SIGTERM', graceMs],
    ['SIGKILL', KILL_WAIT_MS],
  ] as const) {
    const process = await context.rest('processes.get', { params: own });
    if (process.exit !== null) return process;
    await context.rest('processes.signal', { params: own, body: { signal } });
    await waitForEnd(context, own, waitMs);
    context.signal.throwIfAborted();
  }
  return await context.rest('processes.get', { params: own });
}

/** Waits until the time is over or the process ends. */
async function waitForEnd(context: ToolContext, params: OfProcess, waitMs: number): Promise<void> {
  const process = await context.rest('processes.get', { params });
  if (process.exit !== null) return;
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(Math.ceil(waitMs))]);
  const query = { follow: true, offset: `${process.stdout_bytes}-${process.stderr_bytes}` };
  const own = { ...params, process_id: process.id };
  const events = await context.rest('processes.output', { params: own, query }, signal);
  for await (const { event } of events) if (event === 'end') return;
}

async function answerOutput(
  context: ToolContext,
  params: OfProcess,
  asked: string | null | undefined,
): Promise<ToolAnswer<WorkToolOutput<'sandbox_read_output'>>> {
  const process = await context.rest('processes.get', { params });
  const own = { ...params, process_id: process.id };
  const offset = asked ?? latestOffset(process);
  const events = await context.rest('processes.output', { params: own, query: { offset } });
  const read = await readOutput(events, offset);
  // The state after the output, which includes the exit.
  const now = read.process ?? process;
  return {
    structured: {
      ...toView(now),
      next_offset: read.nextOffset,
      has_more: read.hasMore,
      dropped_bytes: read.droppedBytes,
    },
    text: describeOutput(now, read, offset),
  };
}

function describeOutput(process: Process, read: ReadOutput, offset: string): string {
  const begun = offset.split('-').map(Number);
  const skipped = (begun[0] ?? 0) + (begun[1] ?? 0);
  const lines = [
    ...(skipped > 0 ? [`[${skipped} bytes before this are not shown; offset "0-0" is the beginning]`] : []),
    ...(read.droppedBytes > 0 ? [`[${read.droppedBytes} bytes were too old to be kept]`] : []),
    ...(read.stdout === '' ? [] : [read.stdout.replace(/\n$/, '')]),
    ...(read.stderr === '' ? [] : ['[stderr]', read.stderr.replace(/\n$/, '')]),
    `[${stateOf(process)}; ${read.hasMore ? 'there is more: ' : ''}read on with offset "${read.nextOffset}"]`,
  ];
  return lines.join('\n');
}

function stateOf({ id, name, exit }: Process): string {
  const label = name ?? id;
  return exit === null ? `process ${label} is running` : `process ${label} has ended: ${exit.message}`;
}

function answerProcess(process: Process): ToolAnswer<WorkToolOutput<'sandbox_start_process'>> {
  return { structured: toView(process), text: describeProcess(process) };
}

function describeProcess(process: Process): string {
  const { id, name, command, started_at: startedAt } = process;
  return `${stateOf(process)} (${name === null ? '' : `id ${id}, `}started ${startedAt}: ${command.join(' ')})`;
}

function toView(process: Process): WorkToolOutput<'sandbox_start_process'> {
  const { exit } = process;
  return {
    process_id: process.id,
    name: process.name,
    command: process.command,
    status: process.status,
    started_at: process.started_at,
    ended_at: process.ended_at,
    exit_code: exit?.code ?? null,
    end_reason: exit?.reason ?? null,
    end_message: exit?.message ?? null,
    output_bytes: process.stdout_bytes + process.stderr_bytes,
  };
}
