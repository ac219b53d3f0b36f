import { Argument, Command, Option } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { Members, ROLES, type Role } from '../server/members.ts';
import { print, printJson, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('invite')
    .description(
      'Invites a person into an organization, and prints the token that accepts the invite, this once. Nothing is mailed: hand it over yourself.\n' +
        'A second invite to the same address makes the first void. For admins.',
    )
    .addArgument(new Argument('<email>', 'whom; only an account with this address can accept'))
    .addOption(new Option('--role <role>', 'what they may do').choices(ROLES).default('member'))
    .addHelpText(
      'after',
      examples(
        ['svc member invite ben@example.com', 'a token for Ben'],
        ['svc member accept TOKEN', 'what he types then'],
      ),
    )
    .action(invite);
}

async function invite(email: string, { role }: { readonly role: Role }, command: Command): Promise<void> {
  const { isJson } = readGlobals(command);
  await Members.use(command, async (members) => {
    const made = await members.invite(email, role);
    if (isJson) return printJson(made);
    print(made.token ?? '');
    const until = `until ${made.expires_at}`;
    return report(`lets ${email} into ${members.organization} as ${role}, ${until}: svc member accept TOKEN`);
  });
}
