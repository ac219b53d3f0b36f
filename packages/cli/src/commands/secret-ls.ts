import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatAge } from '../terminal/amounts.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists secrets by name. Their values are never shown.')
    .addHelpText(
      'after',
      examples(['svc secret ls', 'all of them'], ['svc secret ls -o json', 'for programs']),
    )
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Secrets } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const { inOrganization } = await import('../server/remote-credentials.ts');
  const client = await connectServer(globals);
  const secrets = await inOrganization(client, 'Secrets are kept by users', (options) =>
    Secrets.list(options),
  );
  if (globals.isJson) return printJson(secrets);
  if (secrets.length === 0) return report('no secrets; set one with: svc secret set NAME --host HOST');
  const now = Date.now();
  const rows = secrets.map(({ name, allowed_hosts: hosts, created_at: made, updated_at: set }) => [
    name,
    hosts.map(({ value }) => value).join(','),
    formatAge(made, now),
    formatAge(set, now),
  ]);
  print(formatTable(['NAME', 'HOSTS', 'AGE', 'LAST SET'], rows));
}
