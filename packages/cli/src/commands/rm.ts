import { Command } from 'commander';
import type { Sandbox } from '@svc/sdk';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

const AT_WORK: ReadonlySet<Sandbox['status']> = new Set(['running', 'starting', 'stopping']);

export function createCommand(): Command {
  return new Command('rm')
    .description('Removes sandboxes with their disks and logs. Images, volumes and snapshots stay.')
    .argument('[name...]', 'the sandboxes; with --force none at all is fine, as of a list that is empty')
    .option('-f, --force', 'also when it runs')
    .addHelpText('after', examples(['svc rm web', 'a stopped sandbox'], ['svc rm -f web', 'a running one']))
    .action(async (names: readonly string[], options: { readonly force?: boolean }, command: Command) => {
      const globals = readGlobals(command);
      if (names.length === 0) {
        if (options.force !== true)
          throw new UsageError(
            'say which sandboxes to remove\n  try: svc rm NAME; their names: svc ps --all',
          );
        return globals.isJson ? printJson([]) : report('nothing to remove');
      }
      const { eachSandbox } = await import('../sandbox/each-sandbox.ts');
      const { connectServer } = await import('../server/connect.ts');
      await eachSandbox(await connectServer(globals), names, globals.isJson, async (sandbox) => {
        const { name, id, status } = sandbox;
        if (options.force !== true && AT_WORK.has(status))
          throw new UsageError(`sandbox ${name} is ${status}\n  try: svc rm -f ${name}`);
        await sandbox.remove();
        return { id, name, is_removed: true };
      });
    });
}
