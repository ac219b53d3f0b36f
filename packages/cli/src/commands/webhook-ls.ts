import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { printWebhooks } from '../terminal/print-webhooks.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists webhooks. Their secrets are not shown again.')
    .option('-q, --quiet', 'only ids')
    .addHelpText(
      'after',
      examples(['svc webhook ls', 'all of them'], ['svc webhook ls -o json', 'with why one was disabled']),
    )
    .action(async ({ quiet }: { readonly quiet?: boolean }, command: Command) => {
      const globals = readGlobals(command);
      const { Webhooks } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const webhooks = await Webhooks.list({ client: await connectServer(globals) });
      if (quiet === true) return webhooks.forEach(({ id }) => print(id));
      if (globals.isJson) return printJson(webhooks);
      if (webhooks.length === 0) return report('no webhooks; make one with: svc webhook create URL -e EVENT');
      printWebhooks(webhooks);
    });
}
