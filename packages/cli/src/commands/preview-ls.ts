import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson, report } from '../terminal/print.ts';
import { printPreviews } from '../terminal/print-previews.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists the previews of a sandbox. Of their tokens only the end is known.')
    .argument('<sandbox>', 'the sandbox')
    .addHelpText('after', examples(['svc preview ls web', 'all of them']))
    .action(async (name: string, _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { connectSandbox } = await import('../server/connect.ts');
      const sandbox = await connectSandbox(globals, name);
      const previews = await sandbox.ports.list();
      if (globals.isJson) return printJson(previews);
      if (previews.length === 0) return report(`no previews; make one with: svc preview create ${name} PORT`);
      printPreviews(previews);
    });
}
