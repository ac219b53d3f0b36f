import { callOptionsOf, type CallOptions } from '../client/call-budget.ts';
import type { Command, CommandExit } from './command.ts';
import { COMMAND_OPTIONS, givenCommandOptions, type CommandOptions } from './command-options.ts';
import type { Commands } from './commands.ts';
import type { OutputStream } from './output-stream.ts';

export interface TerminalOptions extends CommandOptions, CallOptions {
  readonly cols: number;
  readonly rows: number;
  /** The shell of the sandbox unless given. */
  readonly program?: string;
  readonly args?: readonly string[];
}

/** A program in a terminal, over a connection of its own, which ends it when it is closed. */
export class Terminal implements AsyncDisposable {
  readonly #command: Command;

  constructor(command: Command) {
    this.#command = command;
  }

  get pid(): number {
    return this.#command.pid;
  }

  /** Everything that is sent to the screen. */
  get output(): OutputStream {
    return this.#command.stdout;
  }

  /** As if it was typed: `\u0003` is Ctrl-C. */
  async write(data: string | Uint8Array): Promise<void> {
    await this.#command.write(data);
  }

  async resize(size: { readonly cols: number; readonly rows: number }): Promise<void> {
    await this.#command.resize(size);
  }

  async kill(): Promise<void> {
    await this.#command.kill();
  }

  /** Read or discard `output` meanwhile. @throws SvcError */
  async wait(): Promise<CommandExit> {
    return await this.#command.wait();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#command[Symbol.asyncDispose]();
  }
}

/** Opens terminals in a sandbox. */
export class Terminals {
  readonly #commands: Commands;
  readonly #shell: () => string;

  constructor(commands: Commands, shell: () => string) {
    this.#commands = commands;
    this.#shell = shell;
  }

  /** @throws SvcError `exec_failed` when the program cannot be started */
  async open(options: TerminalOptions): Promise<Terminal> {
    const call = callOptionsOf(options, {
      ...COMMAND_OPTIONS,
      cols: true,
      rows: true,
      program: true,
      args: true,
    });
    const { cols, rows, program = this.#shell(), args = [] } = options;
    const request = {
      cmd: program,
      args,
      tty: true,
      cols,
      rows,
      ...givenCommandOptions(options),
      env: { TERM: 'xterm-256color', ...options.env },
    };
    return new Terminal(await this.#commands.open(request, call));
  }
}
