import { setTimeout as pause } from 'node:timers/promises';
import type { ExecCommandArgs, SandboxExecResult, WriteStdinArgs } from '@openai/agents-core/sandbox';
import { elapsedSeconds, formatExecResponse, truncateOutput } from '@openai/agents-core/sandbox/internal';
import type { Sandbox } from '@svc/sdk';
import { UnreadOutput } from './output.ts';

const SHELL = '/bin/sh';
const EXEC_YIELD_MS = 10_000;
const WRITE_YIELD_MS = 250;
const SCREEN = { cols: 120, rows: 40 } as const;
const CTRL_C = '\u0003';

interface Running {
  readonly output: UnreadOutput;
  /** Resolves to the exit code when all output has come. */
  readonly ended: Promise<number>;
  readonly write: (text: string) => Promise<void>;
  readonly kill: () => Promise<void>;
}

interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Commands of an agent: one that takes longer than the agent waits goes on under a number. It ends with the session. */
export class Processes {
  readonly #sandbox: Sandbox;
  readonly #running = new Map<number, Running>();
  #latest = 0;

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  async exec(args: ExecCommandArgs, place: Place): Promise<SandboxExecResult> {
    const startedAt = Date.now();
    const running = await this.#start(args, place);
    const exitCode = await codeWithin(running, args.yieldTimeMs ?? EXEC_YIELD_MS);
    const { stdout, stderr, output } = running.output.take();
    const cut = truncateOutput(output, args.maxOutputTokens);
    return {
      output: cut.text,
      stdout,
      stderr,
      wallTimeSeconds: elapsedSeconds(startedAt),
      ...(exitCode === undefined ? { sessionId: this.#keep(running) } : { exitCode }),
      ...tokensOf(cut),
    };
  }

  /** In words for the model. */
  async writeStdin({ sessionId, chars = '', ...args }: WriteStdinArgs): Promise<string> {
    const running = this.#running.get(sessionId);
    if (running === undefined) {
      const output = `write_stdin failed: session not found: ${sessionId}`;
      return formatExecResponse({ output, wallTimeSeconds: 0, exitCode: 1 });
    }
    const startedAt = Date.now();
    if (chars !== '') await running.write(chars);
    const exitCode = await codeWithin(running, args.yieldTimeMs ?? WRITE_YIELD_MS);
    if (exitCode !== undefined) this.#running.delete(sessionId);
    const cut = truncateOutput(running.output.take().output, args.maxOutputTokens);
    return formatExecResponse({
      output: cut.text,
      wallTimeSeconds: elapsedSeconds(startedAt),
      ...(exitCode === undefined ? { sessionId } : { exitCode }),
      ...tokensOf(cut),
    });
  }

  /** Ends all that still run. */
  async end(): Promise<void> {
    const running = [...this.#running.values()];
    this.#running.clear();
    await Promise.all(running.map(async ({ kill }) => await kill()));
  }

  async #start(args: ExecCommandArgs, place: Place): Promise<Running> {
    const { cmd, shell = SHELL, login = true, tty = false, runAs } = args;
    const words = [login ? '-lc' : '-c', cmd];
    const options = { ...place, ...(runAs === undefined ? {} : { user: runAs }) };
    const output = new UnreadOutput();
    if (tty) {
      const terminal = await this.#sandbox.pty.open({ ...SCREEN, ...options, program: shell, args: words });
      const read = output.collect('stdout', terminal.output.texts());
      const ended = Promise.all([terminal.wait(), read]).then(([{ shellCode }]) => shellCode);
      return watched({ output, ended, write: (text) => terminal.write(text), kill: () => terminal.kill() });
    }
    const command = await this.#sandbox.commands.start(shell, words, options);
    const read = [
      output.collect('stdout', command.stdout.texts()),
      output.collect('stderr', command.stderr.texts()),
    ];
    const ended = Promise.all([command.wait(), ...read]).then(([{ shellCode }]) => shellCode);
    // Without a terminal nothing makes a signal of the character.
    const write = async (text: string): Promise<void> => {
      if (text.includes(CTRL_C)) await command.signal('SIGINT');
      await command.write(text.replaceAll(CTRL_C, ''));
    };
    return watched({ output, ended, write, kill: () => command.kill() });
  }

  #keep(running: Running): number {
    this.#latest += 1;
    this.#running.set(this.#latest, running);
    return this.#latest;
  }
}

/** A caller may never ask how it ended; and what has ended already cannot be killed. */
function watched(running: Running): Running {
  running.ended.catch(() => undefined);
  return { ...running, kill: async () => await running.kill().catch(() => undefined) };
}

/** Undefined: it still runs. */
async function codeWithin({ ended }: Running, milliseconds: number): Promise<number | undefined> {
  const waiting = new AbortController();
  try {
    const late = pause(milliseconds, undefined, { signal: waiting.signal }).catch(() => undefined);
    return await Promise.race([ended, late]);
  } finally {
    waiting.abort();
  }
}

function tokensOf({ originalTokenCount }: { readonly originalTokenCount?: number }): {
  readonly originalTokenCount?: number;
} {
  return originalTokenCount === undefined ? {} : { originalTokenCount };
}
