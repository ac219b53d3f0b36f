import { Command } from 'commander';
import { isServerMeant } from '../context/is-server-meant.ts';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals, type Globals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description(
      'Removes images: of your organization on the server of --context, of SVC_API_URL or of the context in use; else references of this machine, where an image goes with its last one.',
    )
    .argument('<reference...>', 'references or ids')
    .addHelpText(
      'after',
      examples(
        ['svc image rm python', 'one image of this machine'],
        ['svc --context lab image rm alpine', 'one of your organization on another server'],
        ['svc image prune', 'all of this machine that no sandbox uses'],
      ),
    )
    .action(async (references: readonly string[], _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const remove = await remover(globals);
      for (const reference of references) {
        await remove(reference);
        if (!globals.isJson) print(reference);
      }
      if (globals.isJson) printJson({ removed: references });
    });
}

async function remover(globals: Globals): Promise<(reference: string) => Promise<void>> {
  if (!(await isServerMeant(globals))) {
    const engine = await connectEngine(globals.dataFolder);
    return (reference) => engine.images.removeImage(reference);
  }
  const { Images } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  return (reference) => Images.remove(reference, { client });
}
