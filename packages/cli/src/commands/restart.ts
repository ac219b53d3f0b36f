import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { stopUnlessAtRest } from '../sandbox/at-rest.ts';

export function createCommand(): Command {
  return new Command('restart')
    .description('Stops sandboxes and starts them again. Their disks stay.')
    .argument('<name...>', 'the sandboxes')
    .addHelpText('after', examples(['svc restart web', 'stop and start']))
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { eachSandbox } = await import('../sandbox/each-sandbox.ts');
      const { connectServer } = await import('../server/connect.ts');
      await eachSandbox(await connectServer(globals), names, globals.isJson, async (sandbox) => {
        if (sandbox.status === 'running') await stopUnlessAtRest(sandbox);
        await sandbox.start();
        return sandbox.info;
      });
    });
}
