import { Command } from 'commander';
import { readGlobalsHere } from '../context/require-here.ts';
import { examples } from '../examples.ts';
import { formatAge, formatBytes } from '../terminal/amounts.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description(
      'Lists sandboxes, volumes and snapshots of this machine that have no owner. As root, beside the server.',
    )
    .addHelpText(
      'after',
      examples(['sudo svc orphan ls', 'for people'], ['sudo svc orphan ls -o json', 'for programs']),
    )
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const { dataFolder, isJson } = await readGlobalsHere(command, 'orphans');
  const { readOrphans } = await import('@svc/server/admin');
  const orphans = await readOrphans(dataFolder);
  if (isJson)
    return printJson(
      orphans.map(({ kind, id, state, image, createdAt, diskBytes }) => ({
        kind,
        id,
        state,
        image,
        created_at: createdAt,
        disk_bytes: diskBytes,
      })),
    );
  if (orphans.length === 0) return report(`no orphans: everything in ${dataFolder} has its row in the store`);
  const rows = orphans.map(({ kind, id, state, image, createdAt, diskBytes }) => [
    id,
    kind,
    state ?? '-',
    image ?? '-',
    diskBytes === null ? '-' : formatBytes(diskBytes),
    createdAt === null ? '-' : formatAge(createdAt, Date.now()),
  ]);
  print(formatTable(['ID', 'KIND', 'STATE', 'IMAGE', 'DISK', 'AGE'], rows));
  report(`  data in ${dataFolder}; a store that is restored later may know them, else: svc orphan rm ID`);
}
