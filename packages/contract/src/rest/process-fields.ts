import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { Rlimit } from '../spec/sandbox-spec.ts';
import { strictObject, strictRecord } from '../spec/strict.ts';
import { nullable, optional, Timestamp, Uuid } from './fields.ts';

/** Every way in which a process can end. */
export const PROCESS_END_REASONS = [
  'exit',
  'signal',
  'oom',
  'pids',
  'disk_full',
  'output_limit',
  'timeout',
  'idle',
  'max_duration',
  'host_lost',
  'killed_by',
] as const;
export type ProcessEndReason = (typeof PROCESS_END_REASONS)[number];

export const MIN_OUTPUT_BUFFER_BYTES = 4096;
export const MAX_OUTPUT_BUFFER_BYTES = 16 * 1024 * 1024;
export const DEFAULT_OUTPUT_BUFFER_BYTES = 1024 * 1024;
const MAX_TIMEOUT_SECS = 30 * 24 * 60 * 60;
const MAX_TERMINAL = 65_535;
const MAX_ARGUMENTS = 4096;
const MAX_VARIABLES = 1024;

const Word = Type.String({ pattern: '^[^\\u0000]*$' });
const TerminalSize = Type.Integer({ minimum: 1, maximum: MAX_TERMINAL });

/** Begins with a letter, so that no name is also an id. */
export const ProcessName = Type.String({
  pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,62}$',
  description:
    'A letter, then letters, digits, `_`, `.` and `-`; unique among the running processes of a sandbox',
});

export const StartProcessRequest = strictObject({
  cmd: Type.String({
    minLength: 1,
    pattern: '^[^\\u0000]*$',
    description: 'Looked up on PATH; no shell is involved',
  }),
  args: Type.Optional(Type.Array(Word, { maxItems: MAX_ARGUMENTS })),
  env: Type.Optional(
    strictRecord('^[^=\\u0000]+$', Word, {
      maxProperties: MAX_VARIABLES,
      description: 'Over the environment of the sandbox',
    }),
  ),
  cwd: optional(Word, { description: 'The working directory of the sandbox unless given' }),
  user: optional(Word, { description: '`name`, `uid`, `name:group` or `uid:gid`' }),
  name: optional(ProcessName),
  tty: Type.Optional(Type.Boolean({ default: false, description: 'On a terminal: all output is stdout' })),
  rows: Type.Optional(TerminalSize),
  cols: Type.Optional(TerminalSize),
  stdin: Type.Optional(Type.Boolean({ default: false, description: 'Whether it may be written to' })),
  rlimits: Type.Optional(Type.Array(Rlimit, { maxItems: 16 })),
  timeout_secs: optional(Type.Integer({ minimum: 1, maximum: MAX_TIMEOUT_SECS }), {
    description: 'It is killed when it runs longer, also without a connected client',
  }),
  max_output_bytes: optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), {
    description: 'It is killed when it writes more than this, both streams together',
  }),
  output_buffer_bytes: Type.Optional(
    Type.Integer({
      minimum: MIN_OUTPUT_BUFFER_BYTES,
      maximum: MAX_OUTPUT_BUFFER_BYTES,
      default: DEFAULT_OUTPUT_BUFFER_BYTES,
      description: 'How much unread output of each stream is kept at most; older output is dropped',
    }),
  ),
});
export type StartProcessRequest = Static<typeof StartProcessRequest>;

const ProcessExit = strictObject({
  code: nullable(Type.Integer(), { description: 'Null when a signal ended it, or its end was not observed' }),
  signal: nullable(Type.String(), { description: 'Such as SIGTERM' }),
  shell_code: nullable(Type.Integer(), {
    description:
      'As a shell gives it: the code, or 128 + n when signal n ended it; null when neither is known',
  }),
  reason: Type.Enum([...PROCESS_END_REASONS]),
  killed_by: nullable(Type.String(), { description: 'Who sent the signal or stopped the sandbox' }),
  message: Type.String({ description: 'A sentence that says what happened' }),
});

export const Process = strictObject({
  id: Uuid,
  sandbox_id: Uuid,
  name: nullable(Type.String()),
  pid: nullable(Type.Integer(), { description: 'Inside the sandbox' }),
  command: Type.Array(Type.String(), { description: 'Program and arguments, cut off when they are long' }),
  tty: Type.Boolean(),
  status: Type.Enum(['running', 'exited']),
  started_at: Timestamp,
  ended_at: nullable(Timestamp),
  exit: nullable(ProcessExit, { description: 'Null while it runs' }),
  stdout_bytes: Type.Integer({ description: 'Written so far, as last seen' }),
  stderr_bytes: Type.Integer({ description: 'Written so far, as last seen' }),
});
export type Process = Static<typeof Process>;

export const ResizeRequest = strictObject({ rows: TerminalSize, cols: TerminalSize });

export const SignalRequest = strictObject({
  signal: Type.Union([
    Type.Integer({ minimum: 1, maximum: 64 }),
    Type.String({ pattern: '^(SIG)?[A-Z][A-Z0-9]{1,9}$', description: 'Such as SIGTERM or TERM' }),
  ]),
});
