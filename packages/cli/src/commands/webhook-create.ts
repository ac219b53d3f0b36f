import { Command } from 'commander';
import type { EventPattern } from '@svc/contract/rest';
import { collectEvent } from '../arguments/event-pattern.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';
import { printWebhookSecret } from '../terminal/print-webhooks.ts';

export function createCommand(): Command {
  return new Command('create')
    .description(
      'Has events posted to an address, and prints the secret that they are signed with, this once.\n' +
        'The address is https and public, unless the server was started with --allow-private-targets.',
    )
    .argument('<url>', 'where to')
    .requiredOption(
      '-e, --event <type>',
      "a type such as sandbox_ending, a category such as 'sandbox.*', or '*' (repeatable)",
      collectEvent,
    )
    .option('--description <text>', 'for people')
    .addHelpText(
      'after',
      examples(
        ["svc webhook create https://example.com/hooks -e 'sandbox.*'", 'all events of sandboxes'],
        ['SECRET=$(svc webhook create https://example.com/hooks -e sandbox_ending)', 'a minute before ends'],
      ),
    )
    .action(create);
}

interface Options {
  readonly event: readonly EventPattern[];
  readonly description?: string;
}

async function create(url: string, { event, description }: Options, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Webhooks } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const more = description === undefined ? {} : { description };
  const client = await connectServer(globals);
  const made = await Webhooks.create({ url, eventTypes: event, ...more }, { client });
  if (globals.isJson) printJson(made);
  else printWebhookSecret(made);
}
