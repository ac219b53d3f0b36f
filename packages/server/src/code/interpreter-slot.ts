import { ChannelError, ExecFailed, PlatformError } from '@svc/contract';
import { closedNote, describeEnd, INTERRUPTED_NOTE, KILLED_NOTE, timeoutNote } from './notes.ts';
import type { CodeResult, CodeRunnerParts } from './code-runner.ts';
import {
  Interpreter,
  InterpreterFailed,
  type InterpreterPlace,
  type OutputListener,
  type UnitOutcome,
} from './interpreter.ts';
import { Interruption } from './interruption.ts';
import { INTERPRETERS, type Language } from './languages.ts';

const START_TIMEOUT_MS = 30_000;

/** Hears of a run while it goes on, and what a result does not say. */
export interface RunListener extends OutputListener {
  /** Notes about the interpreter, for stderr. */
  note(text: string): void;
  ended(how: Pick<UnitOutcome, 'result' | 'exception'> & { readonly isInterrupted: boolean }): void;
}

export interface SlotRequest {
  readonly code: string;
  readonly timeoutMs: number | null;
  readonly listener?: RunListener;
}

/** The place of one interpreter: starts it when it is needed, and lets one call in at a time. */
export class InterpreterSlot {
  readonly #sandboxId: string;
  readonly #language: Language;
  readonly #parts: CodeRunnerParts;
  readonly #place: InterpreterPlace;
  #interpreter: Interpreter | undefined;
  /** How an interpreter ended that nobody has been told about. */
  #untold = '';
  #lastTurn: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  #isRunning = false;
  #isInterrupted = false;
  #turns = 0;

  constructor(sandboxId: string, language: Language, parts: CodeRunnerParts, place: InterpreterPlace = {}) {
    this.#sandboxId = sandboxId;
    this.#language = language;
    this.#parts = parts;
    this.#place = place;
  }

  /** Code runs, or waits for its turn. */
  get isBusy(): boolean {
    return this.#turns > 0;
  }

  async run(request: SlotRequest, signal: AbortSignal): Promise<CodeResult> {
    return await this.#takeTurn(() => this.#runNow(request, signal), signal);
  }

  /** Starts the interpreter, so that what is wrong with it is known. */
  async prepare(signal: AbortSignal): Promise<void> {
    await this.#takeTurn(() => this.#ready(signal), signal);
  }

  /** As Ctrl-C does; nothing when no code runs. */
  async interrupt(): Promise<void> {
    if (!this.#isRunning) return;
    this.#isInterrupted = true;
    await this.#interpreter?.interrupt();
  }

  /** Kills the interpreter; who waits for its turn gets a new one. */
  async restart(): Promise<void> {
    const interpreter = this.#interpreter;
    if (interpreter === undefined) return;
    await interpreter.kill();
    // Whoever restarts it knows. `ended` has been seen here before we were told.
    this.#untold = '';
  }

  close(): void {
    this.#isClosed = true;
    this.#interpreter?.close();
  }

  async #takeTurn<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const answer = Promise.withResolvers<T>();
    const abort = () => answer.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    this.#turns += 1;
    // The turn lasts until the work has ended, also when its caller no longer waits.
    this.#lastTurn = this.#lastTurn
      .then(async () => {
        if (!signal.aborted) answer.resolve(await work());
      })
      .catch(answer.reject)
      .finally(() => {
        this.#turns -= 1;
      });
    try {
      return await answer.promise;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async #runNow({ code, timeoutMs, listener }: SlotRequest, signal: AbortSignal): Promise<CodeResult> {
    const interpreter = await this.#ready(signal);
    const told = this.#untold;
    this.#untold = '';
    listener?.note(told);
    this.#isInterrupted = false;
    this.#isRunning = true;
    const { killMs } = this.#parts;
    const interruption = new Interruption(interpreter, { timeoutMs, killMs }, signal);
    try {
      const outcome = await interpreter.run(code, listener);
      this.#isRunning = false;
      return await this.#summarize({ interpreter, outcome, interruption, told, listener });
    } finally {
      this.#isRunning = false;
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
      const kind = { language: this.#language, place: this.#place };
      return await Interpreter.start(kind, channel, signal);
    } catch (error) {
      this.#parts.logger.debug({ sandboxId: this.#sandboxId, err: error }, 'an interpreter did not start');
      throw explainStart(program, error);
    }
  }

  async #summarize({ interpreter, outcome, interruption, told, listener }: Ran): Promise<CodeResult> {
    const { end, lostStreams, stdout, stderr, result, exception } = outcome;
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
    const isInterrupted = this.#isInterrupted && end === 'interrupted' && timeoutMs === null;
    if (isInterrupted) notes.unshift(INTERRUPTED_NOTE);
    listener?.note(notes.join(''));
    listener?.ended({ result, exception, isInterrupted });
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

/** What is known of code that has ended. */
interface Ran {
  readonly interpreter: Interpreter;
  readonly outcome: UnitOutcome;
  readonly interruption: Interruption;
  readonly told: string;
  readonly listener: RunListener | undefined;
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
