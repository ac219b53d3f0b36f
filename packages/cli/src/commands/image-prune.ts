import { Command } from 'commander';
import { connectImages } from '../engine/connect-images.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatBytes } from '../terminal/amounts.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('prune')
    .description('Removes images that no sandbox uses, and layers that no image uses.')
    .addHelpText('after', examples(['svc image prune', 'frees their disk space']))
    .action(async (_options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const engine = await connectImages(globals);
      const pruned = await engine.images.pruneImages();
      if (globals.isJson) printJson(pruned);
      else
        print(
          `${pruned.images.length} images removed, ${formatBytes(pruned.freedBytes)} freed (data in ${globals.dataFolder})`,
        );
    });
}
