import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { ChannelError, PlatformError, type ChannelClient } from '@svc/contract';
import { onAbort } from '@svc/contract/async';
import { CONTROL_FD, interpreterOf, type Language } from './languages.ts';
import { MarkedOutput, type Listen, type Marks, type Shown, type Taken } from './marked-output.ts';
import { DetachedFollower, type InterpreterEnd } from './detached-follower.ts';
import { MARK_BYTES } from './find-marks.ts';
import type { MarkFamilies } from './foreign-output-filter.ts';
import { readUnitAnswer, type UnitAnswer, type UnitEnd } from './unit-answer.ts';

/** The last bytes of a mark, which name its run; those before them name the interpreter. */
const NAME_BYTES = 8;
/** How long the sandbox may take to report the end of a process that was killed. */
const KILL_GRACE_MS = 5000;
/** How much output is quoted of a program that failed to become an interpreter. */
const MAX_REASON_LENGTH = 2000;
/** What a driver says first. */
export const READY = 'ready\n';
/**
 * Code whose server died runs on for this long, so that a repeated call gets its outcome; then its interpreter is ended
 * with it, because abandoned code would block other callers for ever.
 */
const LEASE_MS = 120_000;
const RENEW_MS = 20_000;
/** Code that follows within this keeps the lease of the code before it, which saves a message to the sandbox. */
const LEASE_END_MS = 20;
const BUSY_RETRY_MS = 50;
/** In the length of a unit: options stand before its code. */
const HAS_OPTIONS = 2 ** 31;
const SIGINT = 2;
const SIGKILL = 9;

/** One piece of code to run, once however often it is sent. */
export interface Unit {
  /** At most 64 bytes. */
  readonly id: string;
  readonly code: string;
  readonly options?: UnitOptions | undefined;
}

export interface UnitOptions {
  /** Over the environment of the interpreter, for this unit alone. */
  readonly env?: Readonly<Record<string, string>>;
  /** The value of a last expression is a result, and not printed. */
  readonly quiet?: boolean;
}

export interface UnitOutcome {
  /** `ended`: the interpreter itself is gone; `ended` of the interpreter says how. `forgotten`: it ran, and nothing is kept of it. */
  readonly end: UnitEnd | 'ended' | 'forgotten';
  /** What the code has closed so that later calls could not use it; the interpreter was ended for that. */
  readonly lostStreams: UnitAnswer['lostStreams'];
  readonly result: UnitAnswer['result'];
  readonly exception: UnitAnswer['exception'];
  readonly executionCount: UnitAnswer['executionCount'];
  readonly stdout: Taken;
  readonly stderr: Taken;
}

/** What it is started with; the sandbox's own unless given. */
export interface InterpreterPlace {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Receives the output of code while it runs. */
export type OutputListener = Readonly<Record<'stdout' | 'stderr', Listen>> & {
  /** The code begins to run; until then others may have the interpreter. */
  begun?(): void;
  /** A value that the code showed. What it says comes from the sandbox. */
  readonly shown?: Shown;
};

export interface InterpreterHandle {
  /** Of the process in the sandbox. */
  readonly key: string;
  readonly reopen: (signal: AbortSignal) => Promise<ChannelClient>;
}

const NOTHING = { lostStreams: [], result: null, exception: null, executionCount: null } as const;

/**
 * A running interpreter in a sandbox: a detached process that outlives every connection, and this server.
 * - One unit at a time: the caller waits for the end of one before it runs the next. Units of others queue with ours.
 * - Output is read at all times, so neither the interpreter nor anything it started ever waits for a reader for long.
 * - When the connection breaks because the engine was restarted, it continues at the same byte.
 * - What it sends is not trusted: at worst it loses its own output.
 */
export class Interpreter {
  readonly #handle: InterpreterHandle;
  readonly #follower: DetachedFollower;
  readonly #families: MarkFamilies;
  readonly #stdout: MarkedOutput;
  readonly #stderr: MarkedOutput;
  readonly #renewal: NodeJS.Timeout;
  readonly #ready = Promise.withResolvers<void>();
  /** What is read of the first line, until it was read. */
  #line: string | undefined;
  #unit: { readonly id: string; readonly bytes: Buffer } | undefined;
  /** Set while the lease of a unit that is over has to be ended. */
  #leaseEnd: NodeJS.Timeout | undefined;
  #leasedAt = Number.NEGATIVE_INFINITY;
  /** Resolves when it is gone and all of its output is here. */
  readonly ended: Promise<InterpreterEnd>;
  isAlive = true;

  private constructor(
    handle: InterpreterHandle,
    channel: ChannelClient,
    from: { readonly stdout: number; readonly stderr: number } | 'start',
  ) {
    this.#handle = handle;
    const isAttached = from !== 'start';
    this.#line = isAttached ? undefined : '';
    this.#families = { first: familyOf(handle.key, 'first'), last: familyOf(handle.key, 'last') };
    this.#stdout = new MarkedOutput(this.#families, isAttached);
    this.#stderr = new MarkedOutput(this.#families, isAttached);
    this.#follower = new DetachedFollower(handle, channel, isAttached ? from : { stdout: 0, stderr: 0 }, {
      stdout: (data) => this.#takeStdout(data),
      stderr: (data) => this.#stderr.push(data),
      skipped: (stream) => (stream === 'stdout' ? this.#stdout : this.#stderr).skip(),
      reopened: () => void this.#send().catch(() => undefined),
    });
    this.#renewal = setInterval(() => this.#renew(), RENEW_MS).unref();
    this.#ready.promise.catch(() => undefined);
    this.ended = this.#watch();
  }

  /**
   * The channel is the interpreter's from here on, and closed when it cannot start.
   * @throws ExecFailed, ChannelError, or InterpreterFailed when the program is no usable interpreter
   */
  static async start(
    handle: InterpreterHandle,
    { language, place }: { readonly language: Language; readonly place: InterpreterPlace },
    channel: ChannelClient,
    signal: AbortSignal,
  ): Promise<Interpreter> {
    try {
      const { program, args } = interpreterOf(language);
      // SAFETY: the program runs inside the sandbox, as its user; no shell is involved.
      const request = { key: handle.key, cmd: program, args: [...args], ...place };
      const more = { stdin: true, stdinFd: CONTROL_FD, timeoutMs: null, isRepeat: true };
      await channel.detached.start({ ...request, ...more }, signal);
      const interpreter = new Interpreter(handle, channel, 'start');
      await interpreter.#untilReady(signal);
      return interpreter;
    } catch (error) {
      channel.close();
      throw error;
    }
  }

  /** One that runs, or ran. What it printed before `from` is not read; what others left is not for our first unit. */
  static attach(
    handle: InterpreterHandle,
    channel: ChannelClient,
    from: { readonly stdout: number; readonly stderr: number },
  ): Interpreter {
    return new Interpreter(handle, channel, from);
  }

  /**
   * Resolves when the code has ended, one way or the other, and everything it printed is here. A unit that was run before is
   * not run again. With `isOld`, when nothing is kept of it, that is found out.
   */
  async run(unit: Unit, listener?: OutputListener, isOld = false): Promise<UnitOutcome> {
    const first = this.#markOf(unit.id, 'first');
    const marks: Marks = {
      first,
      last: this.#markOf(unit.id, 'last'),
      // The driver knows it from the first one.
      shown: Buffer.from(first.map((byte) => byte ^ 0xff)),
      ...(isOld ? { behind: this.#markOf(randomUUID(), 'first') } : {}),
    };
    const expected = {
      stdout: this.#stdout.expect(marks, listener?.stdout, listener?.shown),
      stderr: this.#stderr.expect(marks, listener?.stderr),
    };
    void expected.stdout.begun.then(() => listener?.begun?.());
    this.#unit = { id: unit.id, bytes: encodeUnit(unit, marks) };
    this.#lease();
    try {
      await Promise.race([this.#send(marks.behind), this.ended]);
      const both = Promise.all([expected.stdout.ended, expected.stderr.ended]);
      const first = Promise.race([expected.stdout.ended, expected.stderr.ended]);
      // A stream that the code has closed has no mark; the mark on the other stream says so. Both end with the interpreter.
      const answers = await whole(await first, both);
      const answer = answers.map((bytes) => bytes && readUnitAnswer(bytes)).find((found) => found);
      if (!answer) return this.#summarize({ ...NOTHING, end: this.isAlive ? 'forgotten' : 'ended' });
      // Without its streams the interpreter is of no use to later calls.
      if (answer.lostStreams.length > 0) await this.kill();
      return this.#summarize(answer);
    } finally {
      this.#unit = undefined;
      this.#leaseEnd = setTimeout(() => this.#endLease(), LEASE_END_MS);
    }
  }

  /** As Ctrl-C does: to everything that the interpreter started in its process group, too. */
  async interrupt(): Promise<void> {
    // An interpreter that ended in this very moment has nothing to interrupt.
    await this.#follower.channel.detached.signal(this.#handle.key, SIGINT, null).catch(() => undefined);
  }

  /** Resolves when it is gone. */
  async kill(): Promise<void> {
    const timer = setTimeout(() => this.close(), KILL_GRACE_MS);
    await this.#follower.channel.detached
      .signal(this.#handle.key, SIGKILL, null)
      .catch((error: unknown) => (isRefusal(error) ? undefined : this.close()));
    await this.ended;
    clearTimeout(timer);
  }

  /** Kills the interpreter and drops its output, without waiting. */
  remove(): void {
    const leave = () => this.close();
    this.#follower.channel.detached.forget(this.#handle.key).then(leave, leave);
  }

  /** Detaches from the interpreter, which runs on for other servers. */
  close(): void {
    this.#endLease();
    this.#follower.close();
  }

  async #watch(): Promise<InterpreterEnd> {
    const end = await this.#follower.ended;
    this.isAlive = false;
    clearInterval(this.#renewal);
    this.#stdout.end();
    this.#stderr.end();
    const said = this.#line === undefined ? '' : this.#stderr.take().text.trim();
    const words = said.slice(-MAX_REASON_LENGTH).replaceAll(/\s*\n\s*/g, '; ');
    this.#ready.reject(new InterpreterFailed(words === '' ? 'it ended at once' : words));
    return end;
  }

  async #untilReady(signal: AbortSignal): Promise<void> {
    const stop = onAbort(signal, (reason) => this.#ready.reject(reason));
    try {
      await this.#ready.promise;
    } catch (error) {
      // Its process may still become an interpreter, which no server would use or end.
      if (this.isAlive) this.remove();
      throw error;
    } finally {
      stop();
    }
  }

  #takeStdout(chunk: Uint8Array): void {
    if (this.#line === undefined) return this.#stdout.push(chunk);
    this.#line += Buffer.from(chunk).toString('latin1');
    if (this.#line.length < READY.length && READY.startsWith(this.#line)) return undefined;
    if (this.#line === READY) this.#ready.resolve();
    else this.#ready.reject(new InterpreterFailed(`it says '${this.#line.slice(0, 200)}' at its start`));
    this.#line = undefined;
    return undefined;
  }

  /** Gives the driver its unit, and behind it, when asked for, one that does nothing. */
  async #send(behind?: Buffer): Promise<void> {
    const unit = this.#unit;
    if (unit === undefined) return;
    await this.#write(unit.id, unit.bytes);
    if (behind === undefined) return;
    const nothing = encodeUnit(
      { id: '', code: '' },
      { first: behind, last: this.#markOf(randomUUID(), 'last') },
    );
    await this.#write(behind.toString('hex'), nothing);
  }

  async #write(name: string, bytes: Buffer): Promise<void> {
    while (this.isAlive) {
      try {
        return await this.#follower.channel.detached.writeWhole(this.#handle.key, bytes, name);
      } catch (error) {
        // Closed: the follower sends it again over a new connection. Refused: it has ended, and the follower sees that.
        if (!(error instanceof ChannelError)) throw tooLarge(error);
        if (error.refusal !== 'resource_limit') return undefined;
        await delay(BUSY_RETRY_MS);
      }
    }
    return undefined;
  }

  #renew(): void {
    if (this.#unit === undefined) return;
    this.#leasedAt = performance.now();
    this.#setTimeout(LEASE_MS);
  }

  /** For a unit that begins; it may be there from the one before. */
  #lease(): void {
    const isThere = this.#leaseEnd !== undefined && performance.now() - this.#leasedAt < RENEW_MS;
    clearTimeout(this.#leaseEnd);
    this.#leaseEnd = undefined;
    if (!isThere) this.#renew();
  }

  #endLease(): void {
    if (this.#leaseEnd === undefined) return;
    clearTimeout(this.#leaseEnd);
    this.#leaseEnd = undefined;
    this.#setTimeout(null);
  }

  /** Derived from the name of the unit, so that a repeated call finds its output, and other calls recognize it as foreign. */
  #markOf(id: string, which: keyof MarkFamilies): Buffer {
    const name = digest(`${which} mark of ${id}`).subarray(0, NAME_BYTES);
    return Buffer.concat([this.#families[which], name]);
  }

  #setTimeout(milliseconds: number | null): void {
    // The follower handles an interpreter that cannot be reached.
    this.#follower.channel.detached.setTimeout(this.#handle.key, milliseconds).catch(() => undefined);
  }

  #summarize(answer: Omit<UnitOutcome, 'stdout' | 'stderr'>): UnitOutcome {
    return { ...answer, stdout: this.#stdout.take(), stderr: this.#stderr.take() };
  }
}

export type { InterpreterEnd } from './detached-follower.ts';

/** The program ran, but did not become an interpreter that answers. */
export class InterpreterFailed extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InterpreterFailed';
  }
}

type Answers = readonly (Buffer | null)[];

/** The other stream is waited for, unless the answer says that it is lost. */
async function whole(said: Buffer | null, both: Promise<Answers>): Promise<Answers> {
  const isAlone = said !== null && (readUnitAnswer(said)?.lostStreams.length ?? 0) > 0;
  return isAlone ? [said] : await both;
}

function encodeUnit({ code, options }: Unit, { first, last }: Pick<Marks, 'first' | 'last'>): Buffer {
  const source = Buffer.from(code);
  if (options === undefined) return Buffer.concat([lengthOf(source.length), first, source, last]);
  const json = Buffer.from(JSON.stringify(options));
  const length = lengthOf(HAS_OPTIONS + 4 + json.length + source.length);
  return Buffer.concat([length, first, lengthOf(json.length), json, source, last]);
}

function lengthOf(value: number): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(value);
  return length;
}

function familyOf(key: string, which: keyof MarkFamilies): Buffer {
  return digest(`${which} marks of ${key}`).subarray(0, MARK_BYTES - NAME_BYTES);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function isRefusal(error: unknown): boolean {
  return error instanceof ChannelError && error.kind === 'refused';
}

function tooLarge(error: unknown): unknown {
  if (!(error instanceof RangeError)) return error;
  const message = 'the code is larger than 4 MiB; use a file';
  return new PlatformError('payload_too_large', message, { cause: error });
}
