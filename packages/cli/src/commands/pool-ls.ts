import { Command } from 'commander';
import { readGlobalsHere } from '../context/require-here.ts';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { formatAge, formatBytes } from '../terminal/amounts.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .description('Lists the sandboxes of this machine that are kept warm because such were asked for lately.')
    .addHelpText(
      'after',
      examples(
        ['svc pool ls', 'what waits, and how often it helped'],
        ['svc pool ls -o json', 'for programs'],
      ),
    )
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const { dataFolder, isJson } = await readGlobalsHere(command, 'warm sandboxes');
  const engine = await connectEngine(dataFolder);
  const pool = await engine.pool();
  if (isJson) return printJson(pool);
  if (pool.max === 0)
    return report(`nothing is kept warm: the engine of ${dataFolder} was started with --warm-adaptive 0`);
  const now = Date.now();
  const rows = pool.waiting.map((waiting) => [
    waiting.reference,
    waiting.isolation,
    String(waiting.vcpus),
    formatBytes(waiting.memoryMib * 2 ** 20),
    formatBytes(waiting.diskMib * 2 ** 20),
    waiting.isPrivate ? 'private' : '',
    waiting.programs.join(', '),
    formatAge(waiting.createdAt, now),
  ]);
  if (rows.length > 0)
    print(formatTable(['IMAGE', 'CLASS', 'VCPUS', 'MEMORY', 'DISK', '', 'READY IN IT', 'AGE'], rows));
  report(
    `${rows.length} of ${pool.max} wait; ${pool.handedOut} handed out, ${pool.missed} missed, ${pool.givenBack} given back (data in ${dataFolder})`,
  );
}
