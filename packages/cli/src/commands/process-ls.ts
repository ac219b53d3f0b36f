import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatAge } from '../terminal/amounts.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

const PAGE = 100;

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists the last processes of a sandbox that were started with --detach, newest first.')
    .argument('<sandbox>', 'the sandbox')
    .addHelpText('after', examples(['svc process ls web', 'what runs, and how the others ended']))
    .action(list);
}

async function list(name: string, _options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Sandbox } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const { id } = await Sandbox.connect(name, { client });
  const { data } = await client.call('processes.list', {
    params: { sandbox_id: id },
    query: { limit: PAGE },
  });
  if (globals.isJson) return printJson(data);
  if (data.length === 0) return report(`no processes; start one with: svc exec -d ${name} COMMAND`);
  const now = Date.now();
  const rows = data.map((process) => [
    process.id,
    process.name ?? '-',
    process.status,
    formatAge(process.started_at, now),
    process.command.join(' ').slice(0, 40),
    process.exit?.message ?? '',
  ]);
  print(formatTable(['ID', 'NAME', 'STATUS', 'AGE', 'COMMAND', 'END'], rows));
}
