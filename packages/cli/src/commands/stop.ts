import { Command } from 'commander';
import { parseTimeout } from '../arguments/number.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { stopUnlessAtRest } from '../sandbox/at-rest.ts';

export function createCommand(): Command {
  return new Command('stop')
    .description(
      'Asks the processes of sandboxes to end, and kills those that do not. The disks stay. One that does not run is fine.',
    )
    .argument('<name...>', 'the sandboxes')
    .option('-t, --time <time>', 'how long to wait until they have stopped', parseTimeout, 60)
    .addHelpText('after', examples(['svc stop web', 'and wait until it has stopped']))
    .action(async (names: readonly string[], options: { readonly time: number }, command: Command) => {
      const globals = readGlobals(command);
      const { eachSandbox } = await import('../sandbox/each-sandbox.ts');
      const { connectServer } = await import('../server/connect.ts');
      await eachSandbox(await connectServer(globals), names, globals.isJson, async (sandbox) => {
        await stopUnlessAtRest(sandbox, { timeoutMs: options.time * 1000 });
        return sandbox.info;
      });
    });
}
