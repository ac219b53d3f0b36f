import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';
import { reportAttempt } from '../terminal/print-webhooks.ts';

export function createCommand(): Command {
  return new Command('redeliver')
    .description(
      'Sends a delivery once more now, under the same id, and says how it went; the exit code is 1 when it was not taken.',
    )
    .argument('<webhook>', 'its id, as svc webhook ls shows it')
    .argument('<delivery>', 'its id, as svc webhook deliveries shows it')
    .addHelpText('after', examples(['svc webhook redeliver ID DELIVERY', 'what was given up']))
    .action(async (id: string, deliveryId: string, _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { Webhooks } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const delivery = await Webhooks.redeliver(id, deliveryId, { client: await connectServer(globals) });
      if (globals.isJson) printJson(delivery);
      const isTaken = globals.isJson ? delivery.status === 'succeeded' : reportAttempt(delivery);
      if (!isTaken) process.exitCode = 1;
    });
}
