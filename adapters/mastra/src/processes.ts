import {
  ProcessHandle,
  SandboxProcessManager,
  type CommandResult,
  type ProcessInfo,
  type SpawnProcessOptions,
} from '@mastra/core/workspace';
import { SvcError, type Command, type CommandOptions } from '@svc/sdk';
import type { SvcSandbox } from './sandbox.ts';

const SHELL = '/bin/sh';
const OUT_OF_TIME = 124;

/** Processes that this program has started; each ends with its connection, and so with this program. */
export class SvcProcesses extends SandboxProcessManager<SvcSandbox> {
  override async spawn(command: string, options: SpawnProcessOptions = {}): Promise<ProcessHandle> {
    const place = placeOf(options, this.sandbox.workingDirectory);
    const process = await this.#start(command, place);
    // A command that has ended meanwhile has closed its connection.
    if (options.stdinMode === 'ignore') await process.closeStdin().catch(() => undefined);
    const handle = new SvcProcess(process, options);
    this._tracked.set(handle.pid, handle);
    return handle;
  }

  override async list(): Promise<ProcessInfo[]> {
    return [...this._tracked.values()].map(({ pid, exitCode, command }) => ({
      pid,
      running: exitCode === undefined,
      ...(command === undefined ? {} : { command }),
      ...(exitCode === undefined ? {} : { exitCode }),
    }));
  }

  /** A sandbox that has stopped meanwhile, because it was idle say, is started once more. */
  async #start(command: string, place: CommandOptions): Promise<Command> {
    const start = async () => await this.sandbox.svc.commands.start(SHELL, ['-c', command], place);
    try {
      return await start();
    } catch (error) {
      if (!SvcError.is(error, 'sandbox_not_running') && !SvcError.is(error, 'sandbox_not_found')) throw error;
      this.sandbox.status = 'stopped';
      await this.sandbox.ensureRunning();
      return await start();
    }
  }
}

class SvcProcess extends ProcessHandle {
  readonly pid: string;
  exitCode: number | undefined;
  readonly #process: Command;
  readonly #hasStdin: boolean;
  readonly #ended: Promise<CommandResult>;

  constructor(process: Command, options: SpawnProcessOptions) {
    super(options);
    this.pid = String(process.pid);
    this.#process = process;
    this.#hasStdin = options.stdinMode !== 'ignore';
    this.#ended = this.#follow(options.timeout);
    // A caller may never wait.
    this.#ended.catch(() => undefined);
  }

  override async wait(): Promise<CommandResult> {
    return await this.#ended;
  }

  async kill(): Promise<boolean> {
    if (this.exitCode !== undefined) return false;
    try {
      await this.#process.kill();
      return true;
    } catch (error) {
      // It has ended meanwhile.
      await this.#ended.catch(() => Promise.reject(error));
      return false;
    }
  }

  async sendStdin(data: string): Promise<void> {
    this.#requireStdin();
    await this.#process.write(data);
  }

  override async closeStdin(): Promise<void> {
    this.#requireStdin();
    await this.#process.closeStdin();
  }

  async #follow(timeoutMs: number | undefined): Promise<CommandResult> {
    const startedAt = performance.now();
    let timedOut = false;
    const end = (): void => {
      timedOut = true;
      this.#process.kill().catch(() => undefined);
    };
    const timer = timeoutMs === undefined ? undefined : setTimeout(end, timeoutMs);
    try {
      const [{ shellCode, signal }] = await Promise.all([
        this.#process.wait(),
        each(this.#process.stdout.texts(), (text) => this.emitStdout(text)),
        each(this.#process.stderr.texts(), (text) => this.emitStderr(text)),
      ]);
      if (timedOut) this.emitStderr(`\nProcess timed out after ${timeoutMs}ms`);
      this.exitCode = timedOut ? OUT_OF_TIME : shellCode;
      return {
        success: this.exitCode === 0,
        exitCode: this.exitCode,
        stdout: this.stdout,
        stderr: this.stderr,
        executionTimeMs: performance.now() - startedAt,
        killed: signal !== null,
        timedOut,
      };
    } finally {
      clearTimeout(timer);
    }
  }

  #requireStdin(): void {
    if (this.exitCode !== undefined)
      throw new Error(`Process ${this.pid} has exited with code ${this.exitCode}`);
    if (!this.#hasStdin) throw new Error(`Process ${this.pid} was started with stdinMode 'ignore'`);
  }
}

async function each(texts: AsyncIterable<string>, take: (text: string) => void): Promise<void> {
  for await (const text of texts) take(text);
}

/** Undefined values of the environment leave a variable out. */
function placeOf({ env = {}, cwd }: SpawnProcessOptions, folder: string | undefined): CommandOptions {
  const given = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  const place = cwd ?? folder;
  return {
    env: Object.fromEntries(given) as Record<string, string>,
    ...(place === undefined ? {} : { cwd: place }),
  };
}
