import { Command } from 'commander';
import { examples } from '../examples.ts';
import { databaseOption, loadLocal, readHere } from '../local-store.ts';
import { formatAge } from '../terminal/amounts.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists organizations.')
    .addOption(databaseOption())
    .addHelpText('after', examples(['svc org ls', 'all of them'], ['svc org ls -o json', 'for programs']))
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const { place, isJson } = await readHere(command, 'organizations');
  const { listLocalOrganizations } = await loadLocal(place);
  const organizations = await listLocalOrganizations(place);
  if (isJson) {
    return printJson(
      organizations.map(({ id, slug, name, plan, quotas, members, sandboxes, createdAt }) => ({
        id,
        slug,
        name,
        plan,
        quotas,
        members,
        sandboxes,
        created_at: createdAt,
      })),
    );
  }
  if (organizations.length === 0)
    return report(`no organizations in ${place.dataFolder}; make one with: svc org create NAME`);
  const rows = organizations.map(({ slug, name, plan, members, sandboxes, createdAt }) => [
    slug,
    name,
    plan,
    String(members),
    String(sandboxes),
    formatAge(createdAt, Date.now()),
  ]);
  print(formatTable(['ORGANIZATION', 'NAME', 'PLAN', 'MEMBERS', 'SANDBOXES', 'AGE'], rows));
  report(`data in ${place.dataFolder}`);
}
