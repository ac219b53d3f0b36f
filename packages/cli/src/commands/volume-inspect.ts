import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('inspect')
    .description('Shows everything about a volume, as JSON.')
    .argument('<name>', 'the volume')
    .addHelpText('after', examples(['svc volume inspect data', 'size, capacity, labels']))
    .action(async (name: string, _options: unknown, command: Command) => {
      const { Volume } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      printJson((await Volume.get(name, { client: await connectServer(readGlobals(command)) })).info);
    });
}
