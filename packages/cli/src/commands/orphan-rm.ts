import { Command } from 'commander';
import { readGlobalsHere } from '../context/require-here.ts';
import { examples } from '../examples.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { reportFailure } from '../terminal/report-error.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description(
      'Removes what has no owner, sandboxes with their disks, for good. What a row of the store knows is refused, and\n' +
        'so is a volume that a sandbox has.\n' +
        'As root, beside the server.',
    )
    .argument('<id...>', 'as svc orphan ls shows them')
    .option('-f, --force', 'also a sandbox that runs')
    .addHelpText(
      'after',
      examples(
        ['sudo svc orphan rm 0b5c…', 'a stopped sandbox, a volume, a snapshot'],
        ['sudo svc backup /srv/svc.backup', 'before it, if there is any doubt: their disks are in it'],
      ),
    )
    .action(remove);
}

async function remove(
  ids: readonly string[],
  options: { readonly force?: boolean },
  command: Command,
): Promise<void> {
  const { dataFolder, isJson } = await readGlobalsHere(command, 'orphans');
  const { removeLocalOrphan } = await import('@svc/server/admin');
  const done: object[] = [];
  for (const id of ids) {
    try {
      await removeLocalOrphan(dataFolder, id, { isForced: options.force === true });
      done.push({ id, is_removed: true });
      if (!isJson) print(id);
    } catch (error) {
      process.exitCode = reportFailure(error, { isJson });
    }
  }
  if (isJson) printJson(done);
  else report(`data in ${dataFolder}`);
}
