import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('usage')
    .description('Shows what the organization used this month, and an estimate of what it costs.')
    .option('--by-sandbox', 'by sandbox and day')
    .addHelpText('after', examples(['svc usage', 'of this month'], ['svc usage --by-sandbox', 'who used it']))
    .action(showUsage);
}

async function showUsage(options: { readonly bySandbox?: boolean }, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Usage } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  if (options.bySandbox === true) {
    const usage = await Usage.bySandbox({ client });
    if (globals.isJson) return printJson(usage);
    const names = new Map(usage.sandboxes.map(({ id, name }) => [id, name]));
    const rows = usage.rows.map(({ sandbox_id: id, day, ...amounts }) => [
      names.get(id) ?? id,
      day.slice(0, 10),
      hours(amounts.vcpu_seconds),
      hours(amounts.mem_mib_seconds / 1024),
      hours(amounts.disk_mib_seconds / 1024),
    ]);
    return print(formatTable(['SANDBOX', 'DAY', 'VCPU HOURS', 'MEMORY GIB HOURS', 'DISK GIB HOURS'], rows));
  }
  const summary = await Usage.summary({ client });
  if (globals.isJson) return printJson(summary);
  // Without prices there is no total.
  const isPriced = summary.line_items.some(({ amount_cents: cents }) => cents > 0);
  const rows = summary.line_items.map(({ name, quantity, unit, amount_cents: cents }) => [
    name,
    quantity.toFixed(3),
    unit,
    ...(isPriced ? [dollars(cents)] : []),
  ]);
  if (!isPriced) return print(formatTable(['WHAT', 'AMOUNT', 'UNIT'], rows));
  print(
    formatTable(
      ['WHAT', 'AMOUNT', 'UNIT', 'COST'],
      [...rows, ['total', '', '', dollars(summary.total_cents)]],
    ),
  );
}

function hours(seconds: number): string {
  return (seconds / 3600).toFixed(3);
}

function dollars(cents: number): string {
  return `$${(cents / 100).toFixed(2)}`;
}
