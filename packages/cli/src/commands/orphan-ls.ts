import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatAge, formatBytes } from '../terminal/amounts.ts';
import { print, printJson, tell } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description(
      'Lists sandboxes, volumes and snapshots of this machine that nobody owns. As root, beside the server.',
    )
    .addHelpText(
      'after',
      examples(['sudo svc orphan ls', 'for people'], ['sudo svc orphan ls -o json', 'for programs']),
    )
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const { dataFolder, isJson } = readGlobals(command);
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
  if (orphans.length === 0) return tell('everything that the engine has, has its row in the store');
  const rows = orphans.map(({ kind, id, state, image, createdAt, diskBytes }) => [
    id,
    kind,
    state ?? '-',
    image ?? '-',
    diskBytes === null ? '-' : formatBytes(diskBytes),
    createdAt === null ? '-' : formatAge(createdAt, Date.now()),
  ]);
  print(formatTable(['ID', 'KIND', 'STATE', 'IMAGE', 'DISK', 'AGE'], rows));
  tell('  a store that is put back later may know them; else: svc orphan rm ID');
}
