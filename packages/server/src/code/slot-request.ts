import type { ChannelClient, CodeRunResult } from '@svc/contract';
import type { SpareProcess } from '@svc/engine/client';
import type { Logger } from 'pino';
import type { Work } from '../store/idempotency.ts';
import type { OutputListener, UnitOutcome } from './interpreter.ts';

/** Hears of a run while it goes on, and what a result does not say. */
export interface RunListener extends Omit<OutputListener, 'shown'> {
  /** A value that the code showed. */
  result(result: CodeRunResult): void;
  /** Notes about the interpreter, for stderr. */
  note(text: string): void;
  ended(how: RunHow): void;
}

export interface RunHow extends Pick<UnitOutcome, 'result' | 'exception'> {
  readonly isInterrupted: boolean;
  /** Something of its results is missing. */
  readonly isTruncated: boolean;
}

export interface SlotRequest {
  readonly code: string;
  readonly timeoutMs: number | null;
  readonly listener?: RunListener;
  /** The code runs once, however often it is asked for under this name. */
  readonly work?: Work | null;
  /** Asked when its turn has come; what it throws is thrown, and the code does not run. */
  readonly admit?: () => Promise<void>;
  /** Whether somebody has asked for its end. */
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
  /** Opens a new channel with every call; the slot closes it. */
  readonly openChannel: (sandboxId: string, signal: AbortSignal) => Promise<ChannelClient>;
  /** Told which interpreter a sandbox has that was started with nothing but what the sandbox says. */
  readonly onUsed?: (sandboxId: string, process: SpareProcess) => void;
  readonly logger: Pick<Logger, 'debug'>;
  /** For how long code may ignore that it is interrupted before it is killed. */
  readonly killMs?: number;
}
