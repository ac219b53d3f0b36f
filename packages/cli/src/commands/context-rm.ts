import { rm } from 'node:fs/promises';
import { Command } from 'commander';
import { keyPath, readContexts, requireContext, writeContexts } from '../context/context-file.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description('Forgets a context and the key that was kept for it.')
    .argument('<context>', 'as svc context ls names it')
    .addHelpText('after', examples(['svc context rm lab', 'forget it']))
    .action(async (name: string, _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const file = await readContexts(globals.contextFolder);
      requireContext(file, name);
      const { [name]: _gone, ...contexts } = file.contexts;
      await writeContexts(globals.contextFolder, {
        active: file.active === name ? null : file.active,
        contexts,
      });
      await rm(keyPath(globals.contextFolder, name), { force: true });
      if (globals.isJson) printJson({ removed: [name] });
      else print(name);
    });
}
