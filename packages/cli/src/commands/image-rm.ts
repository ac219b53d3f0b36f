import { Command } from 'commander';
import { connectEngine } from '../engine/connect.ts';
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
      const { dataFolder, isJson } = readGlobals(command);
      const engine = await connectEngine(dataFolder);
      for (const reference of references) {
        await engine.removeImage(reference);
        if (!isJson) print(reference);
      }
      if (isJson) printJson({ removed: references });
    });
}
