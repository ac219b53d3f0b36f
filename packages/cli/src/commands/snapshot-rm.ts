import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description('Removes snapshots. Sandboxes that were made from them keep their disks.')
    .argument('<name...>', 'the snapshots')
    .addHelpText('after', examples(['svc snapshot rm clean', 'one snapshot']))
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { connectServer } = await import('../server/connect.ts');
      const client = await connectServer(globals);
      for (const name of names) {
        await client.call('snapshots.removeByName', { params: { name } });
        if (!globals.isJson) print(name);
      }
      if (globals.isJson) printJson({ removed: names });
    });
}
