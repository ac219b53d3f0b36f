import { Command } from 'commander';
import type { EventPattern } from '@svc/contract/rest';
import { collectEvent } from '../arguments/event-pattern.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  return new Command('update')
    .description('Changes a webhook; what is not given stays as it is.')
    .argument('<webhook>', 'its id, as svc webhook ls shows it')
    .option('--url <url>', 'where to')
    .option('-e, --event <type>', 'in place of the events that it asked for (repeatable)', collectEvent)
    .option('--description <text>', 'for people')
    .option('--enable', 'send again, beginning with what waits')
    .option('--disable', 'send nothing')
    .addHelpText(
      'after',
      examples(
        ['svc webhook update --enable ID', 'after it was disabled'],
        ["svc webhook update -e 'sandbox.*' -e quota_exceeded ID", 'other events'],
      ),
    )
    .action(update);
}

interface Options {
  readonly url?: string;
  readonly event?: readonly EventPattern[];
  readonly description?: string;
  readonly enable?: boolean;
  readonly disable?: boolean;
}

async function update(id: string, options: Options, command: Command): Promise<void> {
  const { url, event, description, enable, disable } = options;
  if (enable === true && disable === true) throw new UsageError('give --enable or --disable, not both');
  const isSwitched = enable === true || disable === true;
  const change = {
    ...(url === undefined ? {} : { url }),
    ...(event === undefined ? {} : { eventTypes: event }),
    ...(description === undefined ? {} : { description }),
    ...(isSwitched ? { enabled: enable === true } : {}),
  };
  if (Object.keys(change).length === 0)
    throw new UsageError(`say what to change\n  try: svc webhook update --enable ${id}`);
  const { Webhooks } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  printJson(await Webhooks.update(id, change, { client: await connectServer(readGlobals(command)) }));
}
