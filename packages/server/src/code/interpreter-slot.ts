import { createHash, randomUUID } from 'node:crypto';
import { abortable, onAbort, Mutex } from '@svc/contract/async';
import {
  ChannelError,
  PlatformError,
  type ChannelClient,
  type CodeRunResult,
  type DetachedState,
} from '@svc/contract';
import type { SpareProcess } from '@svc/contract/orchestrator';
import { explainStart, START_TIMEOUT_MS } from './explain-start.ts';
import { describeEnd } from './notes.ts';
import { explainBreak } from '../orchestrator/explain-break.ts';
import { Interpreter, READY, type InterpreterPlace, type InterpreterHandle } from './interpreter.ts';
import type { CodeResult, SlotParts, SlotRequest } from './slot-request.ts';
import { Interruption } from './interruption.ts';
import type { ResultBytes } from './result-pieces.ts';
import { ResultReader } from './result-reader.ts';
import { summarize } from './summarize.ts';
import { interpreterOf, kernelOf, spareOf, type Language } from './languages.ts';

const REMOVE_TIMEOUT_MS = 10_000;

/** The number of ended interpreters that are kept, because a repeated call may ask for the outcome of their code. */
const MAX_ENDED = 8;
const NEEDED_FEATURE = 'svc.repeat';
/** The name of the place whose interpreter is the sandbox's own, started with nothing but what the sandbox says. */
export const SANDBOX_SLOT = '';

/** Finds or starts one interpreter when it is needed, and runs one call at a time. */
export class InterpreterSlot {
  readonly #sandboxId: string;
  readonly #language: Language;
  readonly #parts: SlotParts;
  readonly #place: InterpreterPlace;
  /** Of the keys of its interpreters; a number follows. */
  readonly #prefix: string;
  /** The interpreter that may have been started in advance; null: none that was started for this place. */
  readonly #spare: SpareProcess | null;
  #interpreter: Interpreter | undefined;
  /** How the last interpreter ended, until a result has reported it. */
  #endNote = '';
  readonly #mutex = new Mutex();
  #isClosed = false;
  #isRemoved = false;

  /** `name` is what its interpreter is known by in the sandbox, to every server. */
  constructor(
    sandboxId: string,
    language: Language,
    parts: SlotParts,
    name: string,
    place: InterpreterPlace = {},
  ) {
    this.#sandboxId = sandboxId;
    this.#language = language;
    this.#parts = parts;
    this.#place = place;
    const digest = createHash('sha256')
      .update(JSON.stringify([sandboxId, language, name]))
      .digest('hex');
    this.#prefix = `svc.code.${digest.slice(0, 24)}.`;
    const isSpared = name === SANDBOX_SLOT && kernelOf(language) === undefined;
    this.#spare = isSpared ? spareOf(language) : null;
  }

  async run(request: SlotRequest, signal: AbortSignal): Promise<CodeResult> {
    const isRepeat = request.work?.isRepeat === true;
    const replayed = isRepeat ? await this.#replay(request, signal) : undefined;
    if (replayed !== undefined) return replayed;
    // The first request with this key may have run while this one waited for its turn: then its result is repeated.
    const work = async () =>
      (isRepeat ? await this.#replay(request, signal) : undefined) ?? (await this.#runNow(request, signal));
    return await this.#runLocked(work, signal);
  }

  /** Starts the interpreter, so that what is wrong with it is known. */
  async prepare(signal: AbortSignal): Promise<void> {
    await this.#runLocked(() => this.#ready(signal), signal);
  }

  /** As Ctrl-C does, whichever server the code was sent through. */
  async interrupt(signal: AbortSignal): Promise<void> {
    await (await this.#find(signal))?.interrupt();
  }

  /** Kills the interpreter; queued calls get a new one. */
  async restart(signal: AbortSignal): Promise<void> {
    const interpreter = await this.#find(signal);
    if (interpreter === undefined) return;
    await interpreter.kill();
    // The next result need not report that the state is gone: it was lost on request. `ended` was called before `kill` returned.
    this.#endNote = '';
  }

  /** Lets go of the interpreter; it is there for other servers, and for the next. */
  close(): void {
    this.#isClosed = true;
    this.#interpreter?.close();
  }

  /** Ends the interpreter. One that cannot be reached now ends with its sandbox. */
  async remove(): Promise<void> {
    this.close();
    this.#isRemoved = true;
    const signal = AbortSignal.timeout(REMOVE_TIMEOUT_MS);
    try {
      const channel = await this.#open(signal);
      try {
        for (const { key } of await this.#list(channel, signal)) await channel.detached.forget(key, signal);
      } finally {
        channel.close();
      }
    } catch (error) {
      this.#parts.logger.debug({ sandboxId: this.#sandboxId, err: error }, 'an interpreter was not removed');
    }
  }

  async #runLocked<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    // The lock is held until the work has ended, also when its caller no longer waits.
    const locked = this.#mutex.run(async () => {
      signal.throwIfAborted();
      return await work();
    });
    return await abortable(locked, signal);
  }

  async #runNow(request: SlotRequest, signal: AbortSignal): Promise<CodeResult> {
    await request.admit?.();
    const interpreter = await this.#ready(signal);
    const endNote = this.#endNote;
    this.#endNote = '';
    request.listener?.note(endNote);
    return await this.#runIn(interpreter, request, { endNote, isOld: false }, signal);
  }

  async #runIn(
    interpreter: Interpreter,
    request: SlotRequest,
    { endNote, isOld }: { readonly endNote: string; readonly isOld: boolean },
    signal: AbortSignal,
  ): Promise<CodeResult> {
    const { code, options, timeoutMs, listener, work } = request;
    const { killMs } = this.#parts;
    const interruption = new Interruption(interpreter, { timeoutMs, killMs }, signal);
    const results = new ResultReader();
    const report = (result: CodeRunResult | undefined) => result && listener?.result(result);
    const outputListener = {
      stdout: (data: Buffer) => listener?.stdout(data),
      stderr: (data: Buffer) => listener?.stderr(data),
      shown: (bytes: ResultBytes) => report(results.read(bytes)),
      begun: () => interruption.begin(),
    };
    try {
      const outcome = await interpreter.run(
        { id: work?.id ?? randomUUID(), code, options },
        outputListener,
        isOld,
      );
      if (outcome.result !== null && !results.hasMain) report(results.readMain(outcome.result));
      const ran = { interpreter, outcome, interruption, endNote, request, results };
      const { result, reportsEnd } = await summarize(ran, () => this.#explainLoss());
      // This result reports the end, so the next one need not.
      if (reportsEnd) this.#endNote = '';
      return result;
    } finally {
      interruption.stop();
    }
  }

  /** The outcome of code that was begun before, when its interpreter is known to have been given it; nothing runs twice. */
  async #replay(request: SlotRequest, signal: AbortSignal): Promise<CodeResult | undefined> {
    const channel = await this.#open(signal);
    let interpreter: Interpreter | undefined;
    try {
      for (const { key, stdout, stderr } of (await this.#list(channel, signal)).toReversed()) {
        if (!(await channel.detached.hasWrite(key, request.work?.id ?? '', signal))) continue;
        interpreter = Interpreter.attach(this.#handle(key), channel, {
          stdout: stdout.from,
          stderr: stderr.from,
        });
        return await this.#runIn(interpreter, request, { endNote: '', isOld: true }, signal);
      }
      return undefined;
    } catch (error) {
      throw error instanceof ChannelError ? this.#explain(error) : error;
    } finally {
      interpreter?.close();
      channel.close();
    }
  }

  /** The interpreters that this place had and has, oldest first. */
  async #list(channel: ChannelClient, signal: AbortSignal) {
    const states = await channel.detached.list(signal);
    return states
      .filter(({ key }) => key.startsWith(this.#prefix) || key === this.#spare?.key)
      .toSorted((one, other) => this.#numberOf(one) - this.#numberOf(other));
  }

  /** The spare one comes first, whenever it is there. */
  #numberOf({ key }: DetachedState): number {
    return key === this.#spare?.key ? 0 : Number(key.slice(this.#prefix.length));
  }

  #handle(key: string): InterpreterHandle {
    const reopen = (signal: AbortSignal) => this.#parts.openChannel(this.#sandboxId, signal);
    return { key, reopen };
  }

  async #open(signal: AbortSignal): Promise<ChannelClient> {
    const channel = await this.#parts.openChannel(this.#sandboxId, signal);
    if (channel.agent.features.includes(NEEDED_FEATURE)) return channel;
    channel.close();
    const message =
      'the sandbox was started by an earlier version, which cannot run code for this one; stop and start it';
    throw new PlatformError('unavailable', message);
  }

  async #ready(signal: AbortSignal): Promise<Interpreter> {
    if (this.#interpreter?.isAlive === true) return this.#interpreter;
    const deadline = AbortSignal.timeout(START_TIMEOUT_MS);
    const interpreter = this.#adopt(await this.#start(AbortSignal.any([signal, deadline])));
    if (this.#spare !== null) this.#parts.onUsed?.(this.#sandboxId, this.#spare);
    return interpreter;
  }

  /** The interpreter if there is one, also when another server started it. */
  async #find(signal: AbortSignal): Promise<Interpreter | undefined> {
    if (this.#interpreter?.isAlive === true) return this.#interpreter;
    const channel = await this.#open(signal);
    try {
      const last = (await this.#list(channel, signal)).at(-1);
      if (last?.end === null) return this.#adopt(this.#attach(last, channel));
    } catch (error) {
      channel.close();
      throw error instanceof ChannelError ? this.#explain(error) : error;
    }
    channel.close();
    return undefined;
  }

  #attach({ key, stdout, stderr }: DetachedState, channel: ChannelClient): Interpreter {
    return Interpreter.attach(this.#handle(key), channel, { stdout: stdout.to, stderr: stderr.to });
  }

  #adopt(interpreter: Interpreter): Interpreter {
    const known = this.#interpreter;
    if (known?.isAlive === true) {
      // A concurrent call has adopted it meanwhile.
      interpreter.close();
      return known;
    }
    this.#interpreter = interpreter;
    if (this.#isRemoved) interpreter.remove();
    else if (this.#isClosed) interpreter.close();
    void interpreter.ended.then((end) => {
      if (this.#interpreter !== interpreter) return;
      this.#interpreter = undefined;
      this.#endNote = describeEnd(end);
    });
    return interpreter;
  }

  async #start(signal: AbortSignal): Promise<Interpreter> {
    const channel = await this.#open(signal);
    // A sandbox that does not answer must not hold its callers.
    const stopListening = onAbort(signal, () => channel.close());
    try {
      const known = await this.#list(channel, signal);
      const last = known.at(-1);
      const kind = { language: this.#language, place: this.#place };
      if (last !== undefined && this.#isUnused(last))
        return await Interpreter.start(this.#handle(last.key), kind, channel, signal);
      if (last?.end === null) return this.#attach(last, channel);
      for (const { key } of known.slice(0, -MAX_ENDED)) await channel.detached.forget(key, signal);
      const number = last === undefined ? 1 : this.#numberOf(last) + 1;
      return await Interpreter.start(this.#handle(`${this.#prefix}${number}`), kind, channel, signal);
    } catch (error) {
      channel.close();
      throw this.#explain(signal.aborted ? signal.reason : error);
    } finally {
      stopListening();
    }
  }

  /** It need not be ready yet: `Interpreter.start` with its key waits for that. */
  #isUnused({ key, end, stdout }: DetachedState): boolean {
    return key === this.#spare?.key && end === null && stdout.to <= READY.length;
  }

  #explain(error: unknown): unknown {
    this.#parts.logger.debug({ sandboxId: this.#sandboxId, err: error }, 'an interpreter did not start');
    return explainStart(interpreterOf(this.#language), error);
  }

  async #explainLoss(): Promise<unknown> {
    const reason = await explainBreak((signal) => this.#parts.openChannel(this.#sandboxId, signal));
    if (reason !== undefined) return reason;
    const message =
      'the connection to the sandbox broke while the code ran; whether it ran to its end is unknown';
    return new PlatformError('unavailable', message);
  }
}
