import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatAge } from '../terminal/amounts.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists the public keys that you have registered.')
    .addHelpText(
      'after',
      examples(['svc ssh-key ls', 'all of them'], ['svc ssh-key ls -o json', 'for programs']),
    )
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { SshKeys } = await import('@svc/sdk');
  const { asUser } = await import('../ssh/as-user.ts');
  const { connectServer } = await import('../server/connect.ts');
  const keys = await asUser(SshKeys.list({ client: await connectServer(globals) }));
  if (globals.isJson) return printJson(keys);
  if (keys.length === 0) return report('no SSH keys; register yours with: svc ssh-key add');
  const now = Date.now();
  const rows = keys.map((key) => [
    key.id,
    key.name,
    key.fingerprint,
    formatAge(key.created_at, now),
    key.last_used_at === null ? 'never' : formatAge(key.last_used_at, now),
  ]);
  print(formatTable(['ID', 'NAME', 'FINGERPRINT', 'AGE', 'LAST USED'], rows));
}
