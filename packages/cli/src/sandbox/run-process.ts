import { once } from 'node:events';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { SvcError, type Command, type CommandExit, type OutputStream, type Sandbox } from '@svc/sdk';
import { formatDuration } from '../terminal/amounts.ts';
import { BrokenPipeGuard } from '../terminal/broken-pipe.ts';
import { borrowTerminal, windowSize } from '../terminal/raw-terminal.ts';
import { report } from '../terminal/print.ts';

export interface RunRequest {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | null;
  readonly user: string | null;
  readonly tty: boolean;
  /** Connects our stdin to the process, also when it is a terminal. */
  readonly interactive: boolean;
  readonly timeoutSeconds: number | undefined;
}

/** The exit code of the reference client after a detach. */
const DETACHED = 255;
const TIMED_OUT = 124;

/**
 * Runs a process in a running sandbox like a local one: with our streams, and with our signals forwarded.
 * Returns the code to exit with: its own, 128 + n when signal n ended it, 124 when its time was up, 255 after the detach key.
 */
export async function runProcess(sandbox: Sandbox, request: RunRequest): Promise<number> {
  const { interactive, timeoutSeconds, ...exec } = request;
  const hasTerminal = request.tty && process.stdin.isTTY;
  await using child = await sandbox.commands.open(hasTerminal ? { ...exec, ...windowSize() } : exec, {});
  using signals = forwardSignals(child);
  using terminal = hasTerminal ? borrowTerminal(child) : null;
  using timer = startTimer(child, timeoutSeconds);
  const input = forwardInput(child, {
    interactive,
    filter: terminal?.filter,
    // Without a terminal the end of input cannot be typed.
    ending: request.tty && !hasTerminal ? typedEnd : () => null,
  });
  const finished = Promise.all([
    child.wait(),
    forwardOutput(child.stdout, process.stdout),
    forwardOutput(child.stderr, process.stderr),
  ]);
  using pipe = new BrokenPipeGuard();
  const outcome = await Promise.race([
    finished.catch((error: unknown) => {
      // Starts a new line after the output of the process.
      if (terminal !== null) process.stderr.write('\n');
      throw error;
    }),
    signals.givenUp,
    pipe.broken,
    ...(terminal === null ? [] : [terminal.left]),
  ]);
  input.stop();
  // A process that ignored the signal, or whose output has no reader any more, is ended with the connection.
  if (typeof outcome === 'number') {
    finished.catch(() => undefined);
    return outcome;
  }
  if (outcome === 'left') {
    // The connection, and with it the process, ends with this program; the remaining output is dropped.
    finished.catch(() => undefined);
    terminal?.[Symbol.dispose]();
    report(
      `\nleft ${sandbox.name}; what ran in this terminal has ended (svc exec -dit makes one that stays)`,
    );
    return DETACHED;
  }
  return timer.hasPassed ? timedOut(timeoutSeconds) : exitCode(outcome[0]);
}

function exitCode(exit: CommandExit): number {
  if (exit.reason === 'oom')
    report('the process was killed: it needed more memory than the sandbox has (give it more with -m)');
  return exit.shellCode;
}

function timedOut(seconds: number | undefined): number {
  const limit = seconds === undefined ? 'it may' : formatDuration(seconds);
  report(`the process was killed: it ran longer than ${limit} (--timeout)`);
  return TIMED_OUT;
}

/** Back-pressure: the connection, and with it the process, waits for a slow reader of our output. */
async function forwardOutput(from: OutputStream, to: NodeJS.WriteStream): Promise<void> {
  for await (const chunk of from) if (!to.write(Buffer.from(chunk))) await once(to, 'drain');
}

interface InputOptions {
  readonly interactive: boolean;
  readonly filter: ((chunk: Buffer) => Buffer) | undefined;
  /** The bytes to write at the end of an input whose last byte is `last`; null: none. */
  readonly ending: (last: number) => Uint8Array | null;
}

const NEWLINE = 10;
const CTRL_D = 4;
const END_AGAIN_MS = 1000;
const ENDS_TYPED = 60;

/** A terminal gets the end of input as a character (Ctrl-D). In the middle of a line the first one only submits the line. */
function typedEnd(last: number): Uint8Array {
  return Uint8Array.from(last === NEWLINE ? [CTRL_D] : [CTRL_D, CTRL_D]);
}

/**
 * Repeats the character while the process runs: a shell that sets the terminal to raw mode only later reads earlier input as an
 * ordinary character.
 */
async function typeEnd(child: Command, end: Uint8Array, signal: AbortSignal): Promise<void> {
  await child.write(end);
  for (let times = 0; times < ENDS_TYPED; times += 1) {
    await delay(END_AGAIN_MS, undefined, { signal });
    await child.write(Uint8Array.of(CTRL_D));
  }
}

/** A terminal is not read unless requested: the process gets an empty stdin instead. */
function forwardInput(child: Command, { interactive, filter, ending }: InputOptions): { stop(): void } {
  const stopped = new AbortController();
  const pump = async (): Promise<void> => {
    let last = NEWLINE;
    if (interactive || !process.stdin.isTTY)
      for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
        const typed = filter === undefined ? chunk : filter(chunk);
        last = typed.at(-1) ?? last;
        if (typed.length > 0) await child.write(typed);
      }
    const end = ending(last);
    if (end !== null) await typeEnd(child, end, stopped.signal);
    await child.closeStdin();
  };
  pump().catch((error: unknown) => {
    // A process may end, or close its stdin, without having read everything.
    if (stopped.signal.aborted || SvcError.is(error)) return;
    report(`stdin could not be read: ${String(error)}`);
  });
  return {
    stop: () => {
      stopped.abort();
      process.stdin.destroy();
    },
  };
}

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

/** Signals that ask this program to end; a process may ignore them, as an interactive shell ignores SIGTERM. */
const ENDING: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGTERM', 'SIGHUP']);
const GRACE_MS = 10_000;
const MOST_ASKED = 3;

/** `givenUp`: the code to exit with when the process does not end after a signal. */
function forwardSignals(child: Command): Disposable & { readonly givenUp: Promise<number> } {
  const { promise: givenUp, resolve } = Promise.withResolvers<number>();
  let timer: NodeJS.Timeout | undefined;
  let asked = 0;
  const forward = (name: NodeJS.Signals) => {
    child.signal(constants.signals[name]).catch(() => undefined);
    if (!ENDING.has(name)) return;
    asked += 1;
    const code = 128 + constants.signals[name];
    if (asked >= MOST_ASKED) resolve(code);
    // There is no time limit after Ctrl-C: the user can type it again.
    if (name !== 'SIGINT') timer ??= setTimeout(() => resolve(code), GRACE_MS);
  };
  for (const name of FORWARDED) process.on(name, forward);
  return {
    givenUp,
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      for (const name of FORWARDED) process.off(name, forward);
    },
  };
}

function startTimer(child: Command, seconds: number | undefined): Disposable & { hasPassed: boolean } {
  const timer = { hasPassed: false, [Symbol.dispose]: () => undefined as void };
  if (seconds === undefined) return timer;
  const handle = setTimeout(() => {
    timer.hasPassed = true;
    child.kill().catch(() => undefined);
  }, seconds * 1000);
  timer[Symbol.dispose] = () => clearTimeout(handle);
  return timer;
}
