import { Argument, Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('recover')
    .description(
      'Chooses how a sandbox goes on after an outage of its host: wait for it, start anew, or give up.',
    )
    .argument('<name>', 'the sandbox')
    .addArgument(new Argument('<action>', 'what to do').choices(['wait', 'restart', 'stop']))
    .addHelpText(
      'after',
      examples(
        ['svc recover web restart', 'start it anew'],
        ['svc recover web wait', 'a while longer'],
        ['svc recover web stop', 'stop it as soon as its host is back'],
      ),
    )
    .action(
      async (name: string, action: 'wait' | 'restart' | 'stop', _options: unknown, command: Command) => {
        const globals = readGlobals(command);
        const { connectSandbox } = await import('../server/connect.ts');
        const sandbox = await connectSandbox(globals, name);
        await sandbox.recover(action);
        if (globals.isJson) printJson(sandbox.info);
        else print(`${sandbox.name}  ${sandbox.status}`);
      },
    );
}
