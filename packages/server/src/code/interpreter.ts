import { randomBytes } from 'node:crypto';
import type { ChannelClient, ChannelProcess, ProcessExit, TcpStream } from '@svc/contract';
import { DriverLink, type UnitAnswer, type UnitEnd } from './driver-link.ts';
import { INTERPRETERS, type Language } from './languages.ts';
import { MarkedOutput, type Listen, type Taken } from './marked-output.ts';

const MARK_BYTES = 16;
const TOKEN_BYTES = 32;
const MAX_PORT_DIGITS = 6;
/** How long the sandbox may take to report the end of a process that was killed. */
const KILL_GRACE_MS = 5000;
/** How long a process may take to exit after it closed its connection to us. */
const LEAVE_GRACE_MS = 1000;
/** Of what a program printed that did not become an interpreter. */
const MAX_REASON_LENGTH = 2000;
const SIGINT = 2;

export interface UnitOutcome {
  /** `ended`: the interpreter itself is gone; `ended` of the interpreter says how. */
  readonly end: UnitEnd | 'ended';
  /** What the code has closed so that later calls could not use it; the interpreter was ended for that. */
  readonly lostStreams: UnitAnswer['lostStreams'];
  readonly result: UnitAnswer['result'];
  readonly exception: UnitAnswer['exception'];
  readonly stdout: Taken;
  readonly stderr: Taken;
}

/** What it is started with; the sandbox's own unless given. */
export interface InterpreterPlace {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Who hears what code prints while it runs. */
export type OutputListener = Readonly<Record<'stdout' | 'stderr', Listen>>;

const GONE = { end: 'ended', lostStreams: [], result: null, exception: null } as const;

/** `lost`: the connection broke, and nobody knows. */
export type InterpreterEnd =
  | { readonly kind: 'exited'; readonly exit: ProcessExit }
  | { readonly kind: 'lost' };

/**
 * A running interpreter in a sandbox, with a connection of its own.
 * - One unit at a time: the caller waits for the end of one before it runs the next.
 * - Output is read at all times, so neither the interpreter nor anything it started ever waits for a reader.
 * - What it sends is not trusted: at worst it loses its own output.
 */
export class Interpreter {
  readonly #channel: ChannelClient;
  readonly #process: ChannelProcess;
  readonly #link: DriverLink;
  readonly #stdout: MarkedOutput;
  readonly #stderr: MarkedOutput;
  /** Resolves when it is gone and all of its output is here. */
  readonly ended: Promise<InterpreterEnd>;
  isAlive = true;

  private constructor(
    channel: ChannelClient,
    process: ChannelProcess,
    stream: TcpStream,
    starting: Starting,
  ) {
    this.#channel = channel;
    this.#process = process;
    this.#stdout = starting.stdout;
    this.#stderr = starting.stderr;
    this.#link = new DriverLink(stream, () => void this.#endSoon());
    this.ended = starting.ended.then((end) => {
      this.isAlive = false;
      this.#link.close();
      channel.close();
      return end;
    });
  }

  /**
   * The channel is the interpreter's from here on, and closed when it cannot start.
   * @throws ExecFailed, ChannelError, or InterpreterFailed when the program is no usable interpreter
   */
  static async start(
    { language, place }: { readonly language: Language; readonly place: InterpreterPlace },
    channel: ChannelClient,
    signal: AbortSignal,
  ): Promise<Interpreter> {
    // A sandbox that does not answer must not hold its callers. Not the signal of `exec`, which lasts as long as the process.
    const giveUp = () => channel.close();
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      const { program, args } = INTERPRETERS[language];
      // SAFETY: the program runs inside the sandbox, as its user; no shell is involved.
      const process = await channel.exec({ cmd: program, args: [...args], ...place });
      signal.removeEventListener('abort', giveUp);
      const starting = new Starting(process);
      const token = Buffer.from(randomBytes(TOKEN_BYTES).toString('hex'));
      await process.writeStdin(token);
      await process.closeStdin();
      const port = await starting.port(signal);
      const stream = await channel.connectTcp('127.0.0.1', port, { signal });
      await stream.write(token);
      return new Interpreter(channel, process, stream, starting);
    } catch (error) {
      channel.close();
      throw error;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  /** Resolves when the code has ended, one way or the other, and everything it printed is here. */
  async run(code: string, listener?: OutputListener): Promise<UnitOutcome> {
    const mark = randomBytes(MARK_BYTES);
    const marks = {
      stdout: this.#stdout.expect(mark, listener?.stdout),
      stderr: this.#stderr.expect(mark, listener?.stderr),
    };
    const gone = this.ended.then(() => 'ended' as const);
    const answer = await Promise.race([this.#link.run(code, mark), gone]);
    if (answer === 'ended') return this.#summarize(GONE);
    const { lostStreams } = answer;
    const waited = (['stdout', 'stderr'] as const).filter((name) => !lostStreams.includes(name));
    await Promise.race([Promise.all(waited.map((name) => marks[name])), gone]);
    // Without its streams the interpreter is of no use to later calls.
    if (lostStreams.length > 0) await this.kill();
    return this.#summarize(answer);
  }

  /** As Ctrl-C does: to everything that the interpreter started in its process group, too. */
  async interrupt(): Promise<void> {
    // An interpreter that ended in this very moment has nothing to interrupt.
    await this.#process.signal(SIGINT).catch(() => undefined);
  }

  /** Resolves when it is gone. */
  async kill(): Promise<void> {
    const timer = setTimeout(() => this.#channel.close(), KILL_GRACE_MS);
    await this.#process.kill().catch(() => this.#channel.close());
    await this.ended;
    clearTimeout(timer);
  }

  /** Ends it without waiting. */
  close(): void {
    this.#channel.close();
  }

  /** The driver is gone or not itself: the process is ending, or is of no use any more. */
  async #endSoon(): Promise<void> {
    const timer = setTimeout(() => void this.kill(), LEAVE_GRACE_MS);
    await this.ended;
    clearTimeout(timer);
  }

  #summarize(answer: Omit<UnitOutcome, 'stdout' | 'stderr'>): UnitOutcome {
    return { ...answer, stdout: this.#stdout.take(), stderr: this.#stderr.take() };
  }
}

/** The program ran, but did not become an interpreter that answers. */
export class InterpreterFailed extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InterpreterFailed';
  }
}

/** Reads what the process prints from its first byte on: a line with a port, then the output of user code. */
class Starting {
  readonly stdout = new MarkedOutput();
  readonly stderr = new MarkedOutput();
  readonly ended: Promise<InterpreterEnd>;
  readonly #port = Promise.withResolvers<number>();
  #line: string | undefined = '';

  constructor(process: ChannelProcess) {
    this.#port.promise.catch(() => undefined);
    const reading = [
      read(process.stdout, (chunk) => this.#takeStdout(chunk), this.stdout),
      read(process.stderr, (chunk) => this.stderr.push(chunk), this.stderr),
    ];
    this.ended = this.#watch(process, reading);
  }

  async port(signal: AbortSignal): Promise<number> {
    const abort = () => this.#port.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    try {
      return await this.#port.promise;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async #watch(process: ChannelProcess, reading: readonly Promise<void>[]): Promise<InterpreterEnd> {
    const end = await process.exited.then(
      (exit): InterpreterEnd => ({ kind: 'exited', exit }),
      (): InterpreterEnd => ({ kind: 'lost' }),
    );
    await Promise.all(reading);
    if (this.#line !== undefined) {
      const said = this.stderr
        .take()
        .text.trim()
        .slice(-MAX_REASON_LENGTH)
        .replaceAll(/\s*\n\s*/g, '; ');
      this.#port.reject(new InterpreterFailed(said === '' ? 'it ended at once' : said));
    }
    return end;
  }

  #takeStdout(chunk: Uint8Array): void {
    if (this.#line === undefined) return this.stdout.push(chunk);
    this.#line += Buffer.from(chunk).toString('latin1');
    if (!this.#line.includes('\n') && this.#line.length <= MAX_PORT_DIGITS) return;
    const port = /^(\d+)\n$/.exec(this.#line)?.[1];
    if (port !== undefined) this.#port.resolve(Number(port));
    else this.#port.reject(new InterpreterFailed(`it says '${this.#line.slice(0, 200)}' instead of a port`));
    this.#line = undefined;
  }
}

async function read(
  source: AsyncIterable<Uint8Array>,
  use: (chunk: Uint8Array) => void,
  output: MarkedOutput,
): Promise<void> {
  try {
    for await (const chunk of source) use(chunk);
  } catch {
    // The connection broke; whoever waits for the end of the process is told.
  }
  output.end();
}
