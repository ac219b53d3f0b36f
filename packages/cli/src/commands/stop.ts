import { Command } from 'commander';
import { parseSeconds } from '../arguments/number.ts';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('stop')
    .description('Asks the processes of sandboxes to end, and kills those that do not. The disks stay.')
    .argument('<name...>', 'the sandboxes')
    .option('-t, --time <time>', 'how long the processes may take', parseSeconds, 10)
    .addHelpText('after', examples(['svc stop web', 'within 10 seconds'], ['svc stop -t 0 web', 'at once']))
    .action(async (names: readonly string[], options: { readonly time: number }, command: Command) => {
      const { dataFolder, isJson } = readGlobals(command);
      const engine = await connectEngine(dataFolder);
      for (const name of names) {
        const sandbox = await engine.stopSandbox(name, { graceMs: options.time * 1000 });
        if (isJson) printJson(sandbox);
        else print(name);
      }
    });
}
