import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('inspect')
    .description('Shows everything about a webhook but its secret, as JSON.')
    .argument('<webhook>', 'its id, as svc webhook ls shows it')
    .addHelpText('after', examples(['svc webhook inspect ID', 'also why it was disabled']))
    .action(async (id: string, _options: unknown, command: Command) => {
      const { Webhooks } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      printJson(await Webhooks.get(id, { client: await connectServer(readGlobals(command)) }));
    });
}
