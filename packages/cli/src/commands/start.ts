import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';

export function createCommand(): Command {
  return new Command('start')
    .description(
      'Starts sandboxes that were created or have stopped. Their disks are as they left them; those that run are left alone.',
    )
    .argument('<name...>', 'the sandboxes')
    .addHelpText('after', examples(['svc start web', 'start it again']))
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { eachSandbox } = await import('../sandbox/each-sandbox.ts');
      const { connectServer } = await import('../server/connect.ts');
      const { StartWatch } = await import('../sandbox/watch-start.ts');
      const client = await connectServer(globals);
      await eachSandbox(client, names, globals.isJson, async (sandbox) => {
        // A sandbox that runs already is no error, as with docker.
        if (sandbox.status === 'running') return sandbox.info;
        using _watch = new StartWatch(client, sandbox.name, sandbox.info.spec?.image ?? 'its disk');
        await sandbox.start();
        return sandbox.info;
      });
    });
}
