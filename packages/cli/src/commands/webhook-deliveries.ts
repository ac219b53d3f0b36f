import { Command } from 'commander';
import type { WebhookDelivery } from '@svc/sdk';
import { wholeNumber } from '../arguments/number.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson, report } from '../terminal/print.ts';
import { printDeliveries } from '../terminal/print-webhooks.ts';

export function createCommand(): Command {
  return new Command('deliveries')
    .description(
      'Shows what a webhook was sent in the last 7 days, newest first; as JSON with every attempt.',
    )
    .argument('<webhook>', 'its id, as svc webhook ls shows it')
    .option('-n, --tail <count>', 'the latest only', wholeNumber(1), 20)
    .addHelpText(
      'after',
      examples(
        ['svc webhook deliveries ID', 'the latest 20'],
        ['svc webhook deliveries -n 1 -o json ID', 'what the receiver answered last'],
      ),
    )
    .action(async (id: string, { tail }: { readonly tail: number }, command: Command) => {
      const globals = readGlobals(command);
      const { Webhooks } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const found: WebhookDelivery[] = [];
      for await (const delivery of Webhooks.deliveries(id, { client: await connectServer(globals) })) {
        found.push(delivery);
        if (found.length === tail) break;
      }
      if (globals.isJson) return printJson(found);
      if (found.length === 0) return report(`nothing was sent yet; try: svc webhook test ${id}`);
      printDeliveries(found);
    });
}
