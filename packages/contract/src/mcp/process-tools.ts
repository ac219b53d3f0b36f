import { SandboxReference } from '../operations/sandbox-reference.ts';
import { TimeoutSeconds } from '../operations/run-limits.ts';
import { MAX_PAGE_SIZE } from '../rest/fields.ts';
import { PROCESS_END_REASONS, ProcessName } from '../rest/process-fields.ts';
import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { nullable, optional, READS, REPLACES, RUNS, type ToolSchema } from './tool-schema.ts';

const MAX_WAIT_SECONDS = 3600;

const Word = Type.String({ pattern: '^[^\\u0000]*$' });
const Process = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[A-Za-z0-9_.-]+$',
  description: 'Id of the process, or its name: then the latest of that name',
});
const OF_PROCESS = { ...SandboxReference, process: Process };

const PROCESS = {
  process_id: Type.String(),
  name: nullable(Type.String(), 'As it was given'),
  command: Type.Array(Type.String(), { description: 'Program and arguments, cut off when they are long' }),
  status: Type.Enum(['running', 'exited']),
  started_at: Type.String(),
  ended_at: nullable(Type.String(), 'Null while it runs'),
  exit_code: nullable(
    Type.Integer(),
    'Null while it runs, when a signal ended it, or when its end was not observed',
  ),
  end_reason: nullable(Type.Enum([...PROCESS_END_REASONS]), 'Null while it runs'),
  end_message: nullable(Type.String(), 'A sentence that says how it ended'),
  output_bytes: Type.Integer({ description: 'Written so far, both streams together' }),
};
const ProcessView = strictObject(PROCESS);

const OutputView = strictObject({
  ...PROCESS,
  next_offset: Type.String({ description: 'Hand it back as offset to read on' }),
  has_more: Type.Boolean({ description: 'Whether more was written than is shown here' }),
  dropped_bytes: Type.Integer({ description: 'Of this part, what was too old to be kept' }),
});
const Offset = Type.String({
  pattern: '^\\d{1,15}-\\d{1,15}$',
  description: '`next_offset` of an earlier answer; 0-0 is the beginning',
});

export const processTools = {
  sandbox_start_process: {
    title: 'Start a command in the background',
    description:
      'Start a program in a running sandbox and answer at once; it runs on, also when this session ends. For servers, builds and ' +
      'long commands. No shell is involved: for pipes and the like use command "sh" with args ["-c", "..."].',
    hints: RUNS,
    input: strictObject({
      ...SandboxReference,
      command: Type.String({ minLength: 1, pattern: '^[^\\u0000]*$', description: 'Looked up on PATH' }),
      args: optional(Type.Array(Word, { maxItems: 4096 }), 'Arguments'),
      envs: optional(
        Type.Array(Type.String({ pattern: '^[^=\\u0000]+=[^\\u0000]*$' }), { maxItems: 1024 }),
        'Environment over that of the sandbox, each entry KEY=VALUE',
      ),
      workdir: optional(Word, 'The working directory of the sandbox unless given'),
      name: optional(ProcessName, 'To speak of it by; unique among the running processes of the sandbox'),
      timeout: TimeoutSeconds,
    }),
    output: ProcessView,
  },
  sandbox_list_processes: {
    title: 'List background commands',
    description:
      'List what was started with sandbox_start_process in a sandbox, newest first; also what has ended, with the reason.',
    hints: READS,
    input: strictObject({
      ...SandboxReference,
      status: optional(Type.Enum(['running', 'exited']), 'Only these'),
      limit: optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE_SIZE }), 'How many at most'),
      cursor: optional(Type.String({ minLength: 1, maxLength: 1024 }), '`next_cursor` of the page before'),
    }),
    output: strictObject({
      processes: Type.Array(ProcessView),
      next_cursor: nullable(Type.String(), 'Null on the last page'),
    }),
  },
  sandbox_read_output: {
    title: 'Read the output of a background command',
    description:
      'Read what a background command has written: from offset on, or without offset the latest. Answers at once; to wait for the ' +
      'end of the command use sandbox_wait_process.',
    hints: READS,
    input: strictObject({ ...OF_PROCESS, offset: optional(Offset, '`next_offset` of an earlier answer') }),
    isText: true,
    output: OutputView,
  },
  sandbox_wait_process: {
    title: 'Wait for a background command',
    description:
      'Wait until a background command ends, and read its output as sandbox_read_output does. One that does not end in time runs ' +
      'on; status says which.',
    hints: READS,
    input: strictObject({
      ...OF_PROCESS,
      offset: optional(Offset, '`next_offset` of an earlier answer'),
      timeout: optional(
        Type.Number({ exclusiveMinimum: 0, maximum: MAX_WAIT_SECONDS }),
        'Seconds to wait at most, 60 unless given',
      ),
    }),
    isText: true,
    output: OutputView,
  },
  sandbox_stop_process: {
    title: 'Stop a background command',
    description:
      'End a background command and all that it started: it is asked to (SIGTERM), and killed when it has not ended after grace ' +
      'seconds. One that has ended already is left as it is.',
    hints: REPLACES,
    input: strictObject({
      ...OF_PROCESS,
      grace: optional(Type.Number({ minimum: 0, maximum: 60 }), 'Seconds, 5 unless given'),
    }),
    output: ProcessView,
  },
  sandbox_signal_process: {
    title: 'Send a signal to a background command',
    description: 'Send a signal, such as SIGINT or SIGHUP, to a background command and all that it started.',
    hints: { ...REPLACES, idempotentHint: false },
    input: strictObject({
      ...OF_PROCESS,
      signal: Type.String({ pattern: '^(SIG)?[A-Z][A-Z0-9]{1,9}$', description: 'Such as SIGTERM or TERM' }),
    }),
    output: ProcessView,
  },
} as const satisfies Record<string, ToolSchema>;
