import { Command } from 'commander';
import { readContexts, requireContext, writeContexts } from '../context/context-file.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

/** Stands for no context at all. */
const LOCAL = 'local';

export function createCommand(): Command {
  return new Command('use')
    .description('Makes commands talk to the server of a context; local is the one on this machine.')
    .argument('<context>', 'as svc context ls names it, or local')
    .addHelpText(
      'after',
      examples(['svc context use lab', 'from now on'], ['svc context use local', 'back to this machine']),
    )
    .action(async (name: string, _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const file = await readContexts(globals.contextFolder);
      const isLocal = name === LOCAL && !Object.hasOwn(file.contexts, LOCAL);
      const url = isLocal ? null : requireContext(file, name).url;
      await writeContexts(globals.contextFolder, { ...file, active: isLocal ? null : name });
      if (globals.isJson) printJson({ active: isLocal ? null : name });
      else
        print(
          url === null
            ? 'commands talk to the server on this machine'
            : `commands talk to ${url} (context ${name})`,
        );
    });
}
