import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';

export function createCommand(): Command {
  return new Command('start')
    .description('Starts sandboxes that were created or have stopped. Their disks are as they left them.')
    .argument('<name...>', 'the sandboxes')
    .addHelpText('after', examples(['svc start web', 'start it again']))
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { eachSandbox } = await import('../sandbox/each-sandbox.ts');
      const { connectServer } = await import('../server/connect.ts');
      await eachSandbox(await connectServer(globals), names, globals.isJson, async (sandbox) => {
        await sandbox.start();
        return sandbox.info;
      });
    });
}
