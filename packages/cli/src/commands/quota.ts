import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, tell } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('quota')
    .description('Shows the limits of the organization and how much of them is taken.')
    .addHelpText(
      'after',
      examples(
        ['svc quota', 'limits in force'],
        ['svc org quota acme max_sandboxes=100', 'to change them, on the server'],
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { Usage } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const quotas = await Usage.quotas({ client: await connectServer(globals) });
      if (globals.isJson) return printJson(quotas);
      if (quotas.is_suspended) tell('the organization is suspended: nothing can be made or started');
      const rows = Object.entries(quotas).map(([name, value]) => [name, shown(value)]);
      print(formatTable(['LIMIT OR USE', 'VALUE'], rows));
    });
}

function shown(value: string | number | boolean | null): string {
  if (value === null) return 'unlimited';
  return typeof value === 'number' && !Number.isInteger(value) ? value.toFixed(3) : String(value);
}
