import { Command } from 'commander';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('start')
    .description('Starts sandboxes that were created or have stopped. Their disks are as they left them.')
    .argument('<name...>', 'the sandboxes')
    .addHelpText('after', examples(['svc start web', 'start it again']))
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { dataFolder, isJson } = readGlobals(command);
      const engine = await connectEngine(dataFolder);
      for (const name of names) {
        const sandbox = await engine.startSandbox(name);
        if (isJson) printJson(sandbox);
        else print(name);
      }
    });
}
