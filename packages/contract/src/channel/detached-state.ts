import type { Payload } from '../frames/frame.ts';
import {
  own,
  readArray,
  readMessage,
  readOptionalInteger,
  readOptionalMessage,
  readRecord,
  readUint,
} from './payload-fields.ts';

const REASONS = [
  'exit',
  'signal',
  'oom',
  'pids',
  'disk_full',
  'output_limit',
  'timeout',
  'killed_by',
  'shutdown',
] as const;
const MAX_PROCESSES = 1024;
const NS_PER_MS = 1e6;

/** Why a detached process ended, as far as its sandbox knows. `shutdown`: it was ended together with the sandbox. */
export type DetachedEndReason = (typeof REASONS)[number];

/** The state of a detached process. Times are unix milliseconds, sizes bytes. */
export interface DetachedState {
  readonly key: string;
  readonly pid: number;
  readonly tty: boolean;
  readonly startedAtMs: number;
  /** Null while it runs. */
  readonly end: {
    /** Null when a signal ended it. */
    readonly code: number | null;
    readonly signal: number | null;
    readonly reason: DetachedEndReason;
    /** Who sent the signal, when the reason is `killed_by`. */
    readonly by: string | null;
    readonly atMs: number;
  } | null;
  /** How much each stream has produced, and from where on it is kept. */
  readonly stdout: { readonly from: number; readonly to: number };
  readonly stderr: { readonly from: number; readonly to: number };
}

export function readDetachedState(payload: Payload): DetachedState {
  return {
    key: readMessage(payload, 'key'),
    pid: readUint(payload, 'pid'),
    tty: own(payload, 'tty') === true,
    startedAtMs: Math.floor(readUint(payload, 'started_at_ns') / NS_PER_MS),
    end: own(payload, 'state') === 'exited' ? readEnd(payload) : null,
    stdout: { from: readUint(payload, 'stdout_from'), to: readUint(payload, 'stdout') },
    stderr: { from: readUint(payload, 'stderr_from'), to: readUint(payload, 'stderr') },
  };
}

export function readDetachedStates(payload: Payload): readonly DetachedState[] {
  const states = readArray(own(payload, 'processes'), 'processes').slice(0, MAX_PROCESSES);
  return states.map((state) => readDetachedState(readRecord(state, 'a process')));
}

function readEnd(payload: Payload): DetachedState['end'] {
  const signal = readOptionalInteger(payload, 'signal');
  const given = readOptionalMessage(payload, 'reason');
  return {
    code: signal === null ? readOptionalInteger(payload, 'code') : null,
    signal,
    reason: REASONS.find((known) => known === given) ?? (signal === null ? 'exit' : 'signal'),
    by: readOptionalMessage(payload, 'by'),
    atMs: Math.floor(readUint(payload, 'exited_at_ns') / NS_PER_MS),
  };
}
