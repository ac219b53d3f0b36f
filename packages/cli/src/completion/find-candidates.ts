import type { Command } from 'commander';
import type { Globals } from '../globals.ts';
import {
  contextNames,
  deliveryIds,
  eventPatterns,
  imageNames,
  processNames,
  sandboxNames,
  volumeNames,
  webhookIds,
} from './known-names.ts';

/** Builds the program with the command of the command line loaded, for its names and options. */
export type CreateProgram = (words: readonly string[]) => Promise<Command>;

/** The candidates for the last word, in the order in which they are shown. Empty: the shell completes files. */
export async function findCandidates(
  words: readonly string[],
  createProgram: CreateProgram,
  globals: Globals,
): Promise<readonly string[]> {
  const typed = words.at(-1) ?? '';
  const location = locate(await createProgram(words), words.slice(0, -1));
  const all = await candidatesFor(location, typed, globals);
  return all.filter((candidate) => candidate.startsWith(typed)).toSorted();
}

interface Location {
  readonly command: Command;
  /** The arguments of the command so far. */
  readonly given: readonly string[];
  /** The option whose value is completed; undefined: none. */
  readonly previous: string | undefined;
}

/** The command that the words before name. */
function locate(program: Command, before: readonly string[]): Location {
  let command = program;
  const given: string[] = [];
  let previous: string | undefined;
  for (const word of before) {
    if (previous !== undefined) previous = undefined;
    else if (word.startsWith('-')) previous = takesValue(command, word) ? word : undefined;
    else {
      const next = given.length === 0 ? subcommand(command, word) : undefined;
      if (next === undefined) given.push(word);
      else command = next;
    }
  }
  return { command, given, previous };
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
  { command, given, previous }: Location,
  typed: string,
  globals: Globals,
): Promise<readonly string[]> {
  if (previous !== undefined) return await valuesOf(command, previous, globals);
  if (typed.startsWith('-')) return optionsOf(command);
  if (command.commands.length > 0 && given.length === 0) {
    return command
      .createHelp()
      .visibleCommands(command)
      .map((child) => child.name());
  }
  const { registeredArguments } = command;
  const argument =
    registeredArguments[given.length] ?? registeredArguments.findLast(({ variadic }) => variadic);
  if (argument?.argChoices !== undefined) return argument.argChoices;
  return await namesFor(command, argument?.name(), given, globals);
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
  if (option?.long === '--volume') return (await volumeNames(globals)).map((volume) => `${volume}:`);
  if (option?.long === '--event') return await eventPatterns();
  return option?.argChoices ?? [];
}

async function namesFor(
  command: Command,
  argument: string | undefined,
  given: readonly string[],
  globals: Globals,
): Promise<readonly string[]> {
  const group = command.parent?.name();
  if (argument === 'context') return await contextNames(globals);
  const isImage = argument === 'reference' && command.name() !== 'import';
  if (argument === 'image' || (isImage && (group === 'image' || group === 'svc')))
    return await imageNames(globals);
  if (argument === 'webhook') return await webhookIds(globals);
  if (argument === 'delivery') return await deliveryIds(globals, given[0] ?? '');
  if (argument === 'process') return await processNames(globals, given[0] ?? '');
  if (group === 'volume' && argument === 'name' && command.name() !== 'create')
    return await volumeNames(globals);
  if (argument === 'from' || argument === 'to') {
    const names = group === 'volume' ? await volumeNames(globals) : await sandboxNames(globals);
    return names.map((name) => `${name}:`);
  }
  const isSandbox = argument === 'sandbox' || (group === 'svc' && argument === 'name');
  return isSandbox ? await sandboxNames(globals) : [];
}
