import type { Command } from 'commander';
import { createProgram } from '../packages/cli/src/program.ts';

const WIDTH = 110;

/** docs/reference/cli.md: the `--help` of every command. */
export async function renderCliReference(): Promise<string> {
  const program = await createProgram('all');
  return [
    '# Command line',
    '',
    'Generated from what `svc --help` and `svc COMMAND --help` say by `make generate`.',
    '',
    ...commandsUnder(program).flatMap((command) => [
      `## ${nameOf(command)}`,
      '',
      '```',
      helpOf(command).trimEnd(),
      '```',
      '',
    ]),
  ].join('\n');
}

function commandsUnder(command: Command): readonly Command[] {
  const children = command.createHelp().visibleCommands(command);
  return [command, ...children.filter((child) => child.name() !== 'help').flatMap(commandsUnder)];
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (part) => (text += part),
    getOutHelpWidth: () => WIDTH,
    getOutHasColors: () => false,
  });
  // Global options are those of the program itself.
  command.configureHelp({ showGlobalOptions: false });
  command.outputHelp();
  return text;
}
