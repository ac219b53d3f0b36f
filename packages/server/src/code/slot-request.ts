import type { ChannelClient, CodeRunResult } from '@svc/contract';
import type { SpareProcess } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import type { Work } from '../store/idempotency.ts';
import type { OutputListener, UnitOptions, UnitOutcome } from './interpreter.ts';

/** Receives what happens during a run, and notes that are not part of the result. */
export interface RunListener extends Omit<OutputListener, 'shown'> {
  /** A value that the code showed. */
  result(result: CodeRunResult): void;
  /** Notes about the interpreter, for stderr. */
  note(text: string): void;
  ended(how: RunHow): void;
}

export interface RunHow extends Pick<UnitOutcome, 'result' | 'exception' | 'executionCount'> {
  readonly isInterrupted: boolean;
  /** Some results were dropped. */
  readonly isTruncated: boolean;
}

export interface SlotRequest {
  readonly code: string;
  readonly options?: UnitOptions | undefined;
  readonly timeoutMs: number | null;
  readonly listener?: RunListener;
  /** Requests with the same `Work` run the code once. */
  readonly work?: Work | null;
  /** Called when the turn of this request has come; if it throws, the code does not run and the caller gets the error. */
  readonly admit?: () => Promise<void>;
  /** Whether an interruption was requested, also through another server. */
  readonly wasInterrupted?: () => Promise<boolean>;
}

export interface CodeResult {
  readonly status: 'success' | 'error' | 'timeout';
  readonly output: string;
  readonly error: string;
  /** Output was cut. */
  readonly truncated: boolean;
}

export interface SlotParts {
  /** Opens a new channel with each call; the slot closes it. */
  readonly openChannel: (sandboxId: string, signal: AbortSignal) => Promise<ChannelClient>;
  /** Called with the interpreter of a sandbox that was started with the sandbox's own settings. */
  readonly onUsed?: (sandboxId: string, process: SpareProcess) => void;
  readonly logger: Pick<Logger, 'debug'>;
  /** How long code may ignore an interruption before it is killed. */
  readonly killMs?: number;
}
