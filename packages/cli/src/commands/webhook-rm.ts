import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description('Removes webhooks with the log of what they were sent.')
    .argument('<webhook...>', 'their ids, as svc webhook ls shows them')
    .addHelpText(
      'after',
      examples(['svc webhook rm ID', 'one'], ['svc webhook rm $(svc webhook ls -q)', 'all of them']),
    )
    .action(async (ids: readonly string[], _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { Webhooks } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const client = await connectServer(globals);
      for (const id of ids) {
        await Webhooks.remove(id, { client });
        if (!globals.isJson) print(id);
      }
      if (globals.isJson) printJson({ removed: ids });
    });
}
