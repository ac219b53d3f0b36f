import { once } from 'node:events';
import { constants } from 'node:os';
import { ChannelClient, ChannelError } from '@svc/contract/channel';
import type { ByteStream, ChannelProcess, ExecRequest, ProcessExit } from '@svc/contract/channel';
import type { EngineClient } from '@svc/engine/client';
import { tell } from '../terminal/print.ts';

export interface RunRequest extends ExecRequest {
  /** Hand our stdin to the process, also when it is a terminal. */
  readonly interactive: boolean;
  readonly timeoutSeconds?: number | undefined;
}

/**
 * Runs a process in a running sandbox as if it were ours: its streams are our streams, our signals its signals.
 * Returns the code to exit with: its own, 128 + n when signal n ended it, 124 when its time was up.
 */
export async function runProcess(engine: EngineClient, id: string, request: RunRequest): Promise<number> {
  const { duplexTransport } = await import('@svc/engine/client');
  const channel = await ChannelClient.connect(duplexTransport(await engine.openChannel(id)));
  try {
    const ourTerminal = request.tty === true && process.stdin.isTTY ? process.stdin : undefined;
    const child = await channel.exec(ourTerminal ? { ...request, ...windowSize() } : request);
    using _signals = forwardSignals(child);
    using _terminal = ourTerminal && borrowTerminal(ourTerminal, child);
    using timer = startTimer(child, request.timeoutSeconds);
    const input = forwardInput(child, request.interactive);
    const [exit] = await Promise.all([
      child.exited,
      forwardOutput(child.stdout, process.stdout),
      forwardOutput(child.stderr, process.stderr),
    ]);
    input.stop();
    return timer.hasPassed ? timedOut(request.timeoutSeconds) : exitCode(exit);
  } finally {
    channel.close();
  }
}

function exitCode(exit: ProcessExit): number {
  if (exit.reason === 'oom')
    tell('the process was killed: it needed more memory than the sandbox has (give it more with -m)');
  return exit.signal === null ? exit.code : 128 + exit.signal;
}

function timedOut(seconds: number | undefined): number {
  tell(`the process was killed: it ran longer than ${seconds} s (--timeout)`);
  return 124;
}

/** The connection waits while our own reader is slow, and with it the process. */
async function forwardOutput(from: ByteStream, to: NodeJS.WriteStream): Promise<void> {
  for await (const chunk of from) if (!to.write(chunk)) await once(to, 'drain');
}

/** A terminal is left alone unless asked for: the process sees an empty stdin instead. */
function forwardInput(child: ChannelProcess, interactive: boolean): { stop(): void } {
  const stopped = new AbortController();
  const pump = async (): Promise<void> => {
    if (interactive || !process.stdin.isTTY)
      for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) await child.writeStdin(chunk);
    await child.closeStdin();
  };
  pump().catch((error: unknown) => {
    // A process may end, or close its stdin, without having read everything.
    if (stopped.signal.aborted || error instanceof ChannelError) return;
    tell(`stdin could not be read: ${String(error)}`);
  });
  return {
    stop: () => {
      stopped.abort();
      process.stdin.destroy();
    },
  };
}

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

function forwardSignals(child: ChannelProcess): Disposable {
  const forward = (name: NodeJS.Signals) => void child.signal(constants.signals[name]).catch(() => undefined);
  for (const name of FORWARDED) process.on(name, forward);
  return {
    [Symbol.dispose]: () => {
      for (const name of FORWARDED) process.off(name, forward);
    },
  };
}

/** Keys go to the process as they are, Ctrl-C included, until it ends. */
function borrowTerminal(terminal: NodeJS.ReadStream, child: ChannelProcess): Disposable {
  const resize = () => {
    const { rows, cols } = windowSize();
    child.resize(rows, cols).catch(() => undefined);
  };
  terminal.setRawMode(true);
  process.stdout.on('resize', resize);
  return {
    [Symbol.dispose]: () => {
      process.stdout.off('resize', resize);
      terminal.setRawMode(false);
    },
  };
}

function windowSize(): { rows: number; cols: number } {
  const { rows, columns } = process.stdout;
  return { rows: rows ?? 24, cols: columns ?? 80 };
}

function startTimer(child: ChannelProcess, seconds: number | undefined): Disposable & { hasPassed: boolean } {
  const timer = { hasPassed: false, [Symbol.dispose]: () => undefined as void };
  if (seconds === undefined) return timer;
  const handle = setTimeout(() => {
    timer.hasPassed = true;
    child.kill().catch(() => undefined);
  }, seconds * 1000);
  timer[Symbol.dispose] = () => clearTimeout(handle);
  return timer;
}
