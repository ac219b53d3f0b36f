import { ChannelError, ExecFailed, PlatformError } from '@svc/contract';
import { closedNote, describeEnd, KILLED_NOTE, timeoutNote } from './notes.ts';
import type { CodeResult, CodeRunnerParts } from './code-runner.ts';
import { Interpreter, InterpreterFailed, type UnitOutcome } from './interpreter.ts';
import { Interruption } from './interruption.ts';
import { INTERPRETERS, type Language } from './languages.ts';

const START_TIMEOUT_MS = 30_000;

/** The place of one interpreter: starts it when it is needed, and lets one call in at a time. */
export class InterpreterSlot {
  readonly #sandboxId: string;
  readonly #language: Language;
  readonly #parts: CodeRunnerParts;
  #interpreter: Interpreter | undefined;
  /** How an interpreter ended that nobody has been told about. */
  #untold = '';
  #lastTurn: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(sandboxId: string, language: Language, parts: CodeRunnerParts) {
    this.#sandboxId = sandboxId;
    this.#language = language;
    this.#parts = parts;
  }

  async run(code: string, timeoutMs: number | null, signal: AbortSignal): Promise<CodeResult> {
    const answer = Promise.withResolvers<CodeResult>();
    const abort = () => answer.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    // The turn lasts until the code has ended, also when its caller no longer waits.
    this.#lastTurn = this.#lastTurn
      .then(() => (signal.aborted ? undefined : this.#runNow(code, timeoutMs, signal)))
      .then((result) => result && answer.resolve(result), answer.reject);
    try {
      return await answer.promise;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#interpreter?.close();
  }

  async #runNow(code: string, timeoutMs: number | null, signal: AbortSignal): Promise<CodeResult> {
    const interpreter = await this.#ready(signal);
    const told = this.#untold;
    this.#untold = '';
    const interruption = new Interruption(interpreter, timeoutMs, signal);
    try {
      const outcome = await interpreter.run(code);
      return await this.#summarize(interpreter, outcome, interruption, told);
    } finally {
      interruption.stop();
    }
  }

  async #ready(signal: AbortSignal): Promise<Interpreter> {
    if (this.#interpreter?.isAlive === true) return this.#interpreter;
    const deadline = AbortSignal.timeout(START_TIMEOUT_MS);
    const interpreter = await this.#start(AbortSignal.any([signal, deadline]));
    this.#interpreter = interpreter;
    if (this.#isClosed) interpreter.close();
    void interpreter.ended.then((end) => {
      if (this.#interpreter !== interpreter) return;
      this.#interpreter = undefined;
      this.#untold = describeEnd(end);
    });
    return interpreter;
  }

  async #start(signal: AbortSignal): Promise<Interpreter> {
    const { program } = INTERPRETERS[this.#language];
    const channel = await this.#parts.openChannel(this.#sandboxId, signal);
    try {
      return await Interpreter.start(this.#language, channel, signal);
    } catch (error) {
      this.#parts.logger.debug({ sandboxId: this.#sandboxId, err: error }, 'an interpreter did not start');
      throw explainStart(program, error);
    }
  }

  async #summarize(
    interpreter: Interpreter,
    { end, lostStreams, stdout, stderr }: UnitOutcome,
    interruption: Interruption,
    told: string,
  ): Promise<CodeResult> {
    const notes: string[] = [];
    let isFailure = end !== 'success';
    if (end === 'ended') {
      const how = await interpreter.ended;
      if (how.kind === 'lost') throw await this.#explainLoss();
      // This call tells it, so the next one need not.
      this.#untold = '';
      isFailure = how.exit.reason !== 'exit' || how.exit.code !== 0;
      notes.push(interruption.hasKilled ? KILLED_NOTE : describeEnd(how));
    }
    if (lostStreams.length > 0) {
      this.#untold = '';
      notes.push(closedNote(lostStreams));
    }
    const { timeoutMs } = interruption;
    if (timeoutMs !== null) notes.unshift(timeoutNote(timeoutMs, notes.length === 0));
    return {
      status: timeoutMs !== null ? 'timeout' : isFailure ? 'error' : 'success',
      output: stdout.text,
      error: joinLines(told, stderr.text, ...notes),
      truncated: stdout.isTruncated || stderr.isTruncated,
    };
  }

  /** Asks for a new channel, because the answer says best what has happened: stopped, gone, engine away. */
  async #explainLoss(): Promise<unknown> {
    try {
      const channel = await this.#parts.openChannel(this.#sandboxId, AbortSignal.timeout(START_TIMEOUT_MS));
      channel.close();
    } catch (error) {
      return error;
    }
    const message =
      'the connection to the sandbox broke while the code ran; whether it ran to its end is unknown';
    return new PlatformError('unavailable', message);
  }
}

function explainStart(program: string, error: unknown): unknown {
  if (error instanceof ExecFailed && error.kind === 'not_found') {
    const message = `'${program}' is not in the sandbox; use an image that has it on its PATH`;
    return new PlatformError('exec_failed', message, {
      details: { program, reason: error.kind },
      cause: error,
    });
  }
  if (error instanceof ExecFailed || error instanceof InterpreterFailed) {
    const message = `'${program}' of this sandbox could not be started: ${error.message}`;
    return new PlatformError('exec_failed', message, { details: { program }, cause: error });
  }
  if (error instanceof ChannelError) {
    const message = `the connection to the sandbox broke while '${program}' was starting; try again`;
    return new PlatformError('unavailable', message, { cause: error });
  }
  if (error instanceof Error && error.name === 'TimeoutError') {
    const message = `'${program}' of this sandbox did not start within ${START_TIMEOUT_MS / 1000} s`;
    return new PlatformError('exec_failed', message, { details: { program }, cause: error });
  }
  return error;
}

/** Each part begins on a line of its own. */
function joinLines(...parts: readonly string[]): string {
  return parts
    .filter((part) => part !== '')
    .map((part, index, all) => (index < all.length - 1 && !part.endsWith('\n') ? `${part}\n` : part))
    .join('');
}
