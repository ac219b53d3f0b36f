import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description('Removes volumes with all their files.')
    .argument('<name...>', 'the volumes')
    .addHelpText('after', examples(['svc volume rm data', 'one that no sandbox uses']))
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { Volume } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const client = await connectServer(globals);
      for (const name of names) {
        await (await Volume.get(name, { client })).remove();
        if (!globals.isJson) print(name);
      }
      if (globals.isJson) printJson({ removed: names });
    });
}
