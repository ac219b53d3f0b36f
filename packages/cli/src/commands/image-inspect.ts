import { Command } from 'commander';
import { connectImages } from '../engine/connect-images.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('inspect')
    .description('Shows everything about an image, as JSON.')
    .argument('<reference>', 'reference or id')
    .addHelpText('after', examples(['svc image inspect python', 'digest, configuration, size']))
    .action(async (reference: string, _options: unknown, command: Command) => {
      const engine = await connectImages(readGlobals(command));
      printJson(await engine.images.getImage(reference));
    });
}
