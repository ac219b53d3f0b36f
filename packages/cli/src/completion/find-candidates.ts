import type { Command } from 'commander';
import { readContexts } from '../context/context-file.ts';
import type { Globals } from '../globals.ts';

/** Nobody waits longer for a completion. */
const TIMEOUT_MS = 2000;

/** Makes the program with the command that the words name, for its names and options. */
export type CreateProgram = (words: readonly string[]) => Promise<Command>;

/** What the last word may become, in the order it is shown. Empty: nothing that we know, so files. */
export async function findCandidates(
  words: readonly string[],
  createProgram: CreateProgram,
  globals: Globals,
): Promise<readonly string[]> {
  const typed = words.at(-1) ?? '';
  const { command, argumentCount, previous } = locate(await createProgram(words), words.slice(0, -1));
  const all = await candidatesFor(command, typed, argumentCount, previous, globals);
  return all.filter((candidate) => candidate.startsWith(typed)).toSorted();
}

interface Location {
  readonly command: Command;
  /** How many of its arguments are there already. */
  readonly argumentCount: number;
  /** The option whose value comes next; undefined: none. */
  readonly previous: string | undefined;
}

/** The command that the words before have led to. */
function locate(program: Command, before: readonly string[]): Location {
  let command = program;
  let argumentCount = 0;
  let previous: string | undefined;
  for (const word of before) {
    if (previous !== undefined) previous = undefined;
    else if (word.startsWith('-')) previous = takesValue(command, word) ? word : undefined;
    else {
      const next = argumentCount === 0 ? subcommand(command, word) : undefined;
      if (next === undefined) argumentCount += 1;
      else command = next;
    }
  }
  return { command, argumentCount, previous };
}

function subcommand(command: Command, word: string): Command | undefined {
  return command.commands.find((child) => child.name() === word || child.aliases().includes(word));
}

function takesValue(command: Command, word: string): boolean {
  return command.options.some(
    (option) => (option.long === word || option.short === word) && (option.required || option.optional),
  );
}

async function candidatesFor(
  command: Command,
  typed: string,
  argumentCount: number,
  previous: string | undefined,
  globals: Globals,
): Promise<readonly string[]> {
  if (previous !== undefined) return await valuesOf(command, previous, globals);
  if (typed.startsWith('-')) return optionsOf(command);
  if (command.commands.length > 0 && argumentCount === 0) {
    return command
      .createHelp()
      .visibleCommands(command)
      .map((child) => child.name());
  }
  const { registeredArguments } = command;
  const argument =
    registeredArguments[argumentCount] ?? registeredArguments.findLast(({ variadic }) => variadic);
  if (argument?.argChoices !== undefined) return argument.argChoices;
  return await namesFor(command, argument?.name(), globals);
}

function optionsOf(command: Command): readonly string[] {
  const global = ['--context', '--path', '--output', '--help'];
  return [
    ...command.options.flatMap(({ long }) => (long === undefined || long === null ? [] : [long])),
    ...global,
  ].filter((long, index, all) => all.indexOf(long) === index);
}

async function valuesOf(command: Command, name: string, globals: Globals): Promise<readonly string[]> {
  if (name === '--context') return await contextNames(globals);
  const option = command.options.find(({ long, short }) => long === name || short === name);
  return option?.argChoices ?? [];
}

async function namesFor(
  command: Command,
  argument: string | undefined,
  globals: Globals,
): Promise<readonly string[]> {
  const group = command.parent?.name();
  if (argument === 'context') return await contextNames(globals);
  if (group === 'volume' && argument === 'name' && command.name() !== 'create')
    return await volumeNames(globals);
  if (group === 'svc' && (argument === 'from' || argument === 'to')) {
    return (await sandboxNames(globals)).map((name) => `${name}:`);
  }
  const isSandbox = argument === 'sandbox' || (group === 'svc' && argument === 'name');
  return isSandbox ? await sandboxNames(globals) : [];
}

async function contextNames({ contextFolder }: Globals): Promise<readonly string[]> {
  return Object.keys((await readContexts(contextFolder)).contexts);
}

/** A server that is away is no reason to spoil somebody's command line. */
async function sandboxNames(globals: Globals): Promise<readonly string[]> {
  const { Sandbox } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const call = { client: await connectServer(globals), timeoutMs: TIMEOUT_MS };
  return await Array.fromAsync(Sandbox.list(call), ({ name }) => name).catch(() => []);
}

async function volumeNames(globals: Globals): Promise<readonly string[]> {
  const { Volume } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const call = { client: await connectServer(globals), timeoutMs: TIMEOUT_MS };
  const volumes = await Volume.list(call).catch(() => []);
  return volumes.flatMap(({ name }) => (name === null ? [] : [name]));
}
