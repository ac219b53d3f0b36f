import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { Members } from '../server/members.ts';
import { formatAge } from '../terminal/amounts.ts';
import { print, printJson } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists the members of an organization, and with --invites those who have not answered yet.')
    .option('--invites', 'who was invited, for admins')
    .addHelpText(
      'after',
      examples(
        ['svc member ls', 'in the order they joined'],
        ['svc member ls --invites', 'who has not answered'],
      ),
    )
    .action(list);
}

async function list({ invites = false }: { readonly invites?: boolean }, command: Command): Promise<void> {
  const { isJson } = readGlobals(command);
  const now = Date.now();
  await Members.use(command, async (members) => {
    if (invites) {
      const open = await members.invites();
      if (isJson) return printJson(open);
      const rows = open.map(({ email, role, expires_at: end }) => [email, role, end]);
      return print(formatTable(['INVITED', 'ROLE', 'EXPIRES'], rows));
    }
    const all = await members.list();
    if (isJson) return printJson(all);
    const rows = all.map(({ email, role, display_name: name, joined_at: joined }) => [
      email,
      role,
      name ?? '',
      formatAge(joined, now),
    ]);
    return print(formatTable(['MEMBER', 'ROLE', 'NAME', 'JOINED'], rows));
  });
}
