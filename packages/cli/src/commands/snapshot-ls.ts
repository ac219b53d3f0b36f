import { Command } from 'commander';
import type { Client, RestCallOutput } from '@svc/sdk';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatAge, formatBytes } from '../terminal/amounts.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

const PAGE = 100;

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists snapshots, newest first.')
    .option('-q, --quiet', 'names only')
    .addHelpText('after', examples(['svc snapshot ls', 'all of them']))
    .action(list);
}

async function list(options: { readonly quiet?: boolean }, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { connectServer } = await import('../server/connect.ts');
  const snapshots = await readAll(await connectServer(globals));
  if (globals.isJson) return printJson(snapshots);
  if (options.quiet === true) return snapshots.forEach(({ name }) => print(name));
  if (snapshots.length === 0) return report('no snapshots; make one with: svc snapshot create SANDBOX NAME');
  const now = Date.now();
  const rows = snapshots.map(({ name, size_bytes: size, created_at: made, digest }) => [
    name,
    formatBytes(size),
    formatAge(made, now),
    digest.slice(0, 19),
  ]);
  print(formatTable(['NAME', 'SIZE', 'AGE', 'DIGEST'], rows));
}

async function readAll(client: Client): Promise<RestCallOutput<'snapshots.list'>['data']> {
  const all: RestCallOutput<'snapshots.list'>['data'] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const query = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const page = await client.call('snapshots.list', { query });
    all.push(...page.data);
    cursor = page.next_cursor;
  }
  return all;
}
