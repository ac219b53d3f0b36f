import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatAge, formatBytes } from '../terminal/amounts.ts';
import { print, printJson } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

/** The one volume without a name. */
const HOST_VOLUME = '(host)';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists volumes.')
    .option('-q, --quiet', 'names only')
    .addHelpText('after', examples(['svc volume ls', 'all of them']))
    .action(list);
}

async function list(options: { readonly quiet?: boolean }, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Volume } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const volumes = (await Volume.list({ client: await connectServer(globals) })).map(({ info }) => info);
  if (globals.isJson) return printJson(volumes);
  if (options.quiet === true) return volumes.forEach(({ name }) => void (name !== null && print(name)));
  const now = Date.now();
  const rows = volumes.map((volume) => [
    volume.name ?? HOST_VOLUME,
    volume.used_bytes === null ? '-' : formatBytes(volume.used_bytes),
    volume.capacity_bytes === null ? 'unlimited' : formatBytes(volume.capacity_bytes),
    volume.status,
    formatAge(volume.created_at, now),
  ]);
  print(formatTable(['NAME', 'USED', 'CAPACITY', 'STATUS', 'AGE'], rows));
}
