import { ChannelError, type RunOutput } from './channel-error.ts';
import type { ChannelProcess, ProcessExit } from './channel-process.ts';
import { eachChunk } from './each-chunk.ts';

const DEFAULT_OUTPUT_BYTES = 8 * 1024 * 1024;
/** How long a killed process may take to be reported as gone. */
const KILL_GRACE_MS = 5000;

export interface RunOptions {
  /** Written to stdin, which is closed after it. Without input stdin is closed at once. */
  readonly input?: Uint8Array | AsyncIterable<Uint8Array>;
  /** The process, with all processes that it has started, is killed after this long. */
  readonly timeoutMs?: number;
  /** Of each stream; what comes beyond is read and thrown away. 8 MiB unless given. */
  readonly maxOutputBytes?: number;
  /** Called with every piece as it arrives, and with null at the end of the stream. An error that it throws ends the run. */
  readonly onOutput?: (stream: 'stdout' | 'stderr', data: Uint8Array | null) => void;
  readonly signal?: AbortSignal;
}

export interface RunResult extends RunOutput {
  /** -1 when a signal or the timeout ended the process. */
  readonly code: number;
  readonly signal: number | null;
  readonly reason: ProcessExit['reason'] | 'timeout';
}

/**
 * Starts a process, writes its input, and collects its output until it exits. Without input its stdin is at its end from the start.
 * @throws ChannelError with the output so far when the connection ends
 */
export async function runProcess(
  start: (signal: AbortSignal, isInputOver: boolean) => Promise<ChannelProcess>,
  options: RunOptions,
): Promise<RunResult> {
  const limit = options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES;
  const output = { stdout: new ByteCollector(limit), stderr: new ByteCollector(limit) };
  const deadline = new Deadline(options.timeoutMs);
  const input = options.input === undefined ? undefined : new Feed(options.input);
  let collected: readonly Promise<void>[] | undefined;
  try {
    const process = await start(
      options.signal ? AbortSignal.any([options.signal, deadline.signal]) : deadline.signal,
      input === undefined,
    );
    deadline.watch(process);
    input?.start(process);
    collected = [collect(process, 'stdout', output, options), collect(process, 'stderr', output, options)];
    const [exit] = await Promise.all([process.exited, ...collected]);
    input?.throwIfFailed();
    return summarize(deadline.hasPassed ? { ...exit, reason: 'timeout' } : exit, output);
  } catch (error) {
    if (deadline.wasIgnored) return summarize({ code: -1, signal: null, reason: 'timeout' }, output);
    if (collected === undefined || !isClosed(error)) throw error;
    // Output from before the end is still on its way to the collectors.
    await Promise.allSettled(collected);
    throw new ChannelError('closed', error.message, { cause: error.cause, output: outputOf(output) });
  } finally {
    deadline.stop();
    input?.stop();
  }
}

type Output = Readonly<Record<'stdout' | 'stderr', ByteCollector>>;

function isClosed(error: unknown): error is ChannelError {
  return error instanceof ChannelError && error.kind === 'closed';
}

function summarize(exit: Omit<RunResult, keyof RunOutput>, output: Output): RunResult {
  return { ...exit, ...outputOf(output) };
}

function outputOf(output: Output): RunOutput {
  const truncated = (['stdout', 'stderr'] as const).filter((name) => output[name].isTruncated);
  return { stdout: output.stdout.bytes(), stderr: output.stderr.bytes(), truncated };
}

async function collect(
  process: ChannelProcess,
  stream: 'stdout' | 'stderr',
  output: Output,
  { onOutput }: RunOptions,
): Promise<void> {
  const report = (data: Uint8Array | null): void => {
    try {
      onOutput?.(stream, data);
    } catch (error) {
      // One that has ended meanwhile need not be killed.
      process.kill(true).catch(() => undefined);
      throw error;
    }
  };
  for await (const chunk of process[stream]) {
    output[stream].add(chunk);
    report(chunk);
  }
  report(null);
}

/** Kills the process when its time is up, and stops waiting when it then does not exit. */
class Deadline {
  readonly #giveUp = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #process: ChannelProcess | undefined;
  hasPassed = false;

  constructor(timeoutMs: number | undefined) {
    if (timeoutMs !== undefined) this.#timer = setTimeout(() => this.#pass(), timeoutMs);
  }

  get signal(): AbortSignal {
    return this.#giveUp.signal;
  }

  /** The process was killed, and the sandbox never said that it is gone. */
  get wasIgnored(): boolean {
    return this.#process !== undefined && this.#giveUp.signal.aborted;
  }

  watch(process: ChannelProcess): void {
    this.#process = process;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #pass(): void {
    this.hasPassed = true;
    if (this.#process === undefined) {
      this.#giveUp.abort(new ChannelError('timeout', 'The process did not start in time'));
      return;
    }
    // A broken connection is reported by the wait for the process.
    this.#process.kill(true).catch(() => undefined);
    const grace = new ChannelError('timeout', 'The process was killed but is not reported as gone');
    this.#timer = setTimeout(() => this.#giveUp.abort(grace), KILL_GRACE_MS);
  }
}

/** Writes the input beside everything else; a process may exit without reading it. */
class Feed {
  readonly #input: AsyncIterable<Uint8Array>;
  readonly #stop = new AbortController();
  #error: unknown;

  constructor(input: Uint8Array | AsyncIterable<Uint8Array>) {
    this.#input = input instanceof Uint8Array ? once(input) : input;
  }

  start(process: ChannelProcess): void {
    this.#pump(process).catch((error: unknown) => {
      // A process that stops reading, or a connection that ends, is not an error of the input.
      if (error instanceof ChannelError || this.#stop.signal.aborted) return;
      this.#error = error;
      process.kill().catch(() => undefined);
    });
  }

  stop(): void {
    this.#stop.abort();
  }

  throwIfFailed(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  async #pump(process: ChannelProcess): Promise<void> {
    await eachChunk(this.#input, this.#stop.signal, (chunk) => process.writeStdin(chunk));
    await process.closeStdin();
  }
}

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  yield data;
}

/** Keeps the first bytes of a stream, up to a limit, in one buffer of its own. */
class ByteCollector {
  readonly #limitBytes: number;
  #buffer = new Uint8Array(0);
  #length = 0;
  #isTruncated = false;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  add(data: Uint8Array): void {
    const kept = data.subarray(0, this.#limitBytes - this.#length);
    if (kept.length < data.length) this.#isTruncated = true;
    if (kept.length === 0) return;
    this.#reserve(this.#length + kept.length);
    this.#buffer.set(kept, this.#length);
    this.#length += kept.length;
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#buffer.length) return;
    const grown = new Uint8Array(Math.min(Math.max(bytes, this.#buffer.length * 2, 1024), this.#limitBytes));
    grown.set(this.bytes());
    this.#buffer = grown;
  }
}
