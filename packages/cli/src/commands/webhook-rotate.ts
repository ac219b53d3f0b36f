import { Command } from 'commander';
import { parseSeconds } from '../arguments/number.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';
import { printWebhookSecret } from '../terminal/print-webhooks.ts';

export function createCommand(): Command {
  return new Command('rotate')
    .description(
      'Gives a webhook a new secret and prints it, this once. For a while messages are signed with both.',
    )
    .argument('<webhook>', 'its id, as svc webhook ls shows it')
    .option(
      '--overlap <time>',
      'for how long the secret before signs too (90, 10m, 1h; default: 1d)',
      parseSeconds,
    )
    .addHelpText(
      'after',
      examples(
        ['SECRET=$(svc webhook rotate ID)', 'then give it to the receiver, within a day'],
        ['svc webhook rotate --overlap 0 ID', 'the one before is known to others'],
      ),
    )
    .action(async (id: string, { overlap }: { readonly overlap?: number }, command: Command) => {
      const globals = readGlobals(command);
      const { Webhooks } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const more = overlap === undefined ? {} : { overlapSecs: overlap };
      const rotated = await Webhooks.rotate(id, { client: await connectServer(globals), ...more });
      if (globals.isJson) printJson(rotated);
      else printWebhookSecret(rotated);
    });
}
