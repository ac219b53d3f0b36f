import { shellCodeOf, type RunResult } from '@svc/contract/channel';
import { utf8Decoder } from '../client/utf8.ts';

const decoder = utf8Decoder();

/** How a process ended, and its output. */
export class ExecResult {
  /** -1 when a signal ended the process. */
  readonly code: number;
  /** Which signal ended it; null when it exited. */
  readonly signal: number | null;
  /** `oom`: it was killed because the sandbox ran out of memory. */
  readonly reason: 'exit' | 'signal' | 'oom' | 'max_duration';
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** The streams that were cut after their beginning: see `maxOutputBytes`. */
  readonly truncated: readonly ('stdout' | 'stderr')[];

  constructor(result: Omit<RunResult, 'reason'> & { readonly reason: ExecResult['reason'] }) {
    this.code = result.code;
    this.signal = result.signal;
    this.reason = result.reason;
    this.stdout = result.stdout;
    this.stderr = result.stderr;
    this.truncated = result.truncated;
  }

  /** Whether it exited with 0. */
  get isSuccess(): boolean {
    return this.code === 0;
  }

  /** As a shell gives it: the code, or 128 + n when signal n ended the process. */
  get shellCode(): number {
    return shellCodeOf(this);
  }

  /** stdout as text. */
  text(): string {
    return decoder.decode(this.stdout);
  }

  /** stderr as text. */
  errorText(): string {
    return decoder.decode(this.stderr);
  }
}
