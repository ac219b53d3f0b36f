import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists the hosts of sandboxes, and why one cannot be used.')
    .addHelpText(
      'after',
      examples(['svc node ls', 'what each can do'], ['svc node ls -o json', 'for programs']),
    )
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Capabilities } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const { nodes } = await Capabilities.get({ client });
  if (globals.isJson) return printJson(nodes);
  if (nodes.length === 0) return report('this server has one host, without a name: svc info');
  const rows = nodes.map(({ name, is_available: isAvailable, isolation, sandboxes, version, reason }) => [
    name,
    isAvailable ? 'available' : 'away',
    isolation ?? '-',
    String(sandboxes ?? '-'),
    version ?? '-',
    reason ?? '',
  ]);
  print(formatTable(['NAME', 'STATUS', 'CLASS', 'SANDBOXES', 'VERSION', 'REASON'], rows));
}
