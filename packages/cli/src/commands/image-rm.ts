import { Command } from 'commander';
import { connectImages } from '../engine/connect-images.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description('Removes references; an image goes with its last one.')
    .argument('<reference...>', 'references or ids')
    .addHelpText(
      'after',
      examples(['svc image rm python', 'one image'], ['svc image prune', 'all that no sandbox uses']),
    )
    .action(async (references: readonly string[], _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const engine = await connectImages(globals);
      for (const reference of references) {
        await engine.removeImage(reference);
        if (!globals.isJson) print(reference);
      }
      if (globals.isJson) printJson({ removed: references });
    });
}
