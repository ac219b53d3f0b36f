import type { Message, Payload } from '@svc/contract/frames';

/** Parses the payloads of svc-init defensively: the sandbox may be hostile. */

export interface Hello {
  readonly version: string;
  readonly configured: boolean;
  readonly processes: readonly ProcessState[];
}

export interface GuestStatus {
  readonly activitySequence: number;
  readonly activeProcesses: number;
  /** True when svc-init is the only process. */
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
  /** Includes svc-init. */
  readonly processes: number;
  /** Those of them that were started ahead and are still unused. */
  readonly spares: number;
}

/** Undefined when the message has no count. */
export function readProcessCount({ type, payload }: Message): ProcessCount | undefined {
  if (type !== 'svc.counted') return undefined;
  return { processes: count(payload['processes']), spares: count(payload['spares']) };
}

/** The largest output of one message (PROTOCOL.md); it also bounds a line of the log, in JSON. */
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

/** svc-init's reason for refusing a request. */
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
