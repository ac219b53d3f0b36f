import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';

export function createCommand(): Command {
  return new Command('attach')
    .description(
      'Connects this terminal to a detached process: what it writes is shown, what is typed goes to it. Ctrl-] leaves it running.\n' +
        'The end of what is piped into this command is the end of its input, unless it has a terminal or nothing was piped.\n' +
        "Exit code: the process's, or 0 when it was left.",
    )
    .argument('<sandbox>', 'the sandbox')
    .argument('<process>', 'id or name')
    .addHelpText(
      'after',
      examples(
        ['svc exec -dit --name session web sh', 'first: a shell that stays'],
        ['svc process attach web session', 'as often as one likes'],
        ['svc process attach web job < rows.csv', 'to a process of svc exec -di, to the end of the file'],
      ),
    )
    .action(async (name: string, processId: string, _options: unknown, command: Command) => {
      const { connectRunning } = await import('../sandbox/connect-running.ts');
      const { attachProcess } = await import('../sandbox/attach-process.ts');
      const { connectServer } = await import('../server/connect.ts');
      const sandbox = await connectRunning(name, await connectServer(readGlobals(command)));
      process.exitCode = await attachProcess(await sandbox.commands.connect(processId));
    });
}
