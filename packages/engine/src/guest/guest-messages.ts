import type { Message, Payload } from '@svc/contract/frames';

/** The payloads that svc-init sends, read defensively: the sandbox may be hostile. */

export interface Hello {
  readonly version: string;
  readonly configured: boolean;
  readonly processes: readonly ProcessState[];
}

export interface GuestStatus {
  readonly activitySequence: number;
  readonly activeProcesses: number;
  /** There is no process but svc-init. */
  readonly isAlone: boolean;
}

export interface ProcessOutput {
  readonly key: string;
  readonly stream: 'stdout' | 'stderr';
  readonly offset: number;
  readonly data: Uint8Array;
}

export interface ProcessState {
  readonly key: string;
  readonly pid: number;
  readonly running: boolean;
  readonly tty: boolean;
  readonly code: number | null;
  readonly signal: number | null;
  readonly reason: 'exit' | 'signal' | 'oom' | 'timeout' | null;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
}

export function readHello(payload: Payload): Hello {
  const processes = Array.isArray(payload['processes']) ? payload['processes'] : [];
  return {
    version: text(payload['version']).slice(0, 64),
    configured: payload['configured'] === true,
    processes: processes.slice(0, 1024).filter(isPayload).map(readProcessState),
  };
}

export function readStatus(payload: Payload): GuestStatus {
  return {
    activitySequence: count(payload['activity_seq']),
    activeProcesses: count(payload['active_processes']),
    isAlone: payload['alone'] === true,
  };
}

export interface ProcessCount {
  /** svc-init included. */
  readonly processes: number;
  /** Of these, those that were started for whoever comes and were not used yet. */
  readonly spares: number;
}

/** Undefined when svc-init did not say. */
export function readProcessCount({ type, payload }: Message): ProcessCount | undefined {
  if (type !== 'svc.counted') return undefined;
  return { processes: count(payload['processes']), spares: count(payload['spares']) };
}

/** What svc-init sends at most in one message (PROTOCOL.md); a line of the log is no longer than what this becomes in JSON. */
const MAX_OUTPUT_BYTES = 64 * 1024;

/** Undefined when it is not an output message. */
export function readOutput(payload: Payload): ProcessOutput | undefined {
  const stream = payload['stream'];
  const data = payload['data'];
  if ((stream !== 'stdout' && stream !== 'stderr') || !(data instanceof Uint8Array)) return undefined;
  if (data.length > MAX_OUTPUT_BYTES) return undefined;
  return { key: text(payload['key']), stream, offset: count(payload['offset']), data };
}

export function readProcessState(payload: Payload): ProcessState {
  const reason = payload['reason'];
  return {
    key: text(payload['key']).slice(0, 256),
    pid: count(payload['pid']),
    running: payload['state'] === 'running',
    tty: payload['tty'] === true,
    code: integer(payload['code']),
    signal: integer(payload['signal']),
    reason:
      reason === 'exit' || reason === 'signal' || reason === 'oom' || reason === 'timeout' ? reason : null,
    stdoutBytes: count(payload['stdout']),
    stderrBytes: count(payload['stderr']),
  };
}

/** Why svc-init refused a request, in its own words. */
export function refusalReason(answer: Message): string {
  return text(answer.payload['message']) || text(answer.payload['kind']) || answer.type;
}

function isPayload(value: unknown): value is Payload {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function integer(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : null;
}

function count(value: unknown): number {
  const number = typeof value === 'bigint' ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : 0;
}
