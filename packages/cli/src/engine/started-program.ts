import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Command, Option } from 'commander';

// Shared by `svc engine start` and `svc server start`: they start a program that has its own options.

export type StartOptions = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** A command that also takes the options of the program it starts. */
export function withOptions(command: Command, forwarded: readonly Option[]): Command {
  for (const option of forwarded) command.addOption(option);
  return command;
}

/** The options as arguments of the program. */
export function toArguments(options: StartOptions, forwarded: readonly Option[]): readonly string[] {
  return forwarded.flatMap((option) => {
    const value = options[option.attributeName()];
    if (value === true) return [`--${option.name()}`];
    return [value].flat().flatMap((item) => (typeof item === 'string' ? [`--${option.name()}`, item] : []));
  });
}

/** Runs it in the foreground with our signals. Returns its exit code as a shell counts. */
export async function followToEnd(child: ChildProcess): Promise<number> {
  const stop = () => child.kill('SIGTERM');
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, stop);
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
