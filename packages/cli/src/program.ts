import { showLines } from '@svc/contract/visible';
import { Command } from 'commander';
import about from '../package.json' with { type: 'json' };
import { COMMAND_GROUPS } from './command-list.ts';
import { explainForeignOption } from './foreign-options.ts';
import { globalOptions } from './globals.ts';

/** Builds the program and loads the command of the command line; of the others only the names. `all` loads every command. */
export async function createProgram(words: readonly string[] | 'all'): Promise<Command> {
  const program = new Command('svc')
    .description('Runs untrusted code in sandboxes: on this machine, or on a server elsewhere.')
    .version(about.version, '-V, --version', 'print the version of svc')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('  try: svc --help')
    // Options after the name of a sandbox belong to the command that runs in it.
    .enablePositionalOptions()
    .exitOverride()
    .addHelpCommand(helpCommand())
    .configureOutput({ outputError: (text, write) => write(showLines(explainForeignOption(text))) })
    .addHelpText('after', HELP);
  for (const option of globalOptions()) program.addOption(option);
  const named = words === 'all' ? [] : namedCommands(words);
  for (const { title, commands } of COMMAND_GROUPS) {
    for (const { name, alias, summary, isHidden = false, load } of commands) {
      const isNamed =
        words === 'all' || named.includes(name) || (alias !== undefined && named.includes(alias));
      const command = isNamed ? (await load()).createCommand(createProgram) : new Command(name);
      command.summary(summary).helpGroup(`${title}:`).copyInheritedSettings(program);
      if (isNamed) inheritSettings(command, program, `svc ${name}`);
      if (alias !== undefined) command.alias(alias);
      program.addCommand(command, { hidden: isHidden });
    }
  }
  return program;
}

function helpCommand(): Command {
  return new Command('help')
    .helpOption(false)
    .argument('[command]')
    .summary('explain a command')
    .helpGroup('svc itself:');
}

const WITH_VALUE = new Set(['-o', '--output', '--path', '--context', '--org', '--server-timeout']);

/** The first word that is no option; behind `help`, the one after it as well. */
export function namedCommands(words: readonly string[]): readonly string[] {
  const names = words.filter(
    (word, index) => !word.startsWith('-') && !WITH_VALUE.has(words[index - 1] ?? ''),
  );
  return names.slice(0, names[0] === 'help' ? 2 : 1);
}

/** Commander copies settings only to commands that it creates itself, and accepts options of the program only before a command. */
function inheritSettings(command: Command, parent: Command, line: string): void {
  command.copyInheritedSettings(parent).showHelpAfterError(hint(command, line));
  for (const option of globalOptions()) {
    // Throws when the command has an option of this name itself: its value would be taken for the one of all commands.
    command.addOption(option.hideHelp());
  }
  for (const child of command.commands) {
    // In the list of a group each takes one line.
    child.summary(child.description().split(/(?<=\.)\s/)[0] ?? '');
    inheritSettings(child, command, `${line} ${child.name()}`);
  }
}

/** The hint after a usage error. */
function hint(command: Command, line: string): string {
  const usage = command.commands.length === 0 ? `  usage: ${line} ${command.usage()}\n` : '';
  return `${usage}  try: ${line} --help`;
}

const HELP = `
Examples:
  svc server start --dev --detach            start a server here
  svc image build-demo python                make an image from Debian packages
  svc run python python3 -c 'print(6*7)'     run Python in a sandbox that is gone afterwards
  svc run -it python bash                    a shell
  svc run -d --name web python python3 -m http.server
  svc ps; svc logs -f web; svc exec -it web sh; svc cp ./app web:/app`;
