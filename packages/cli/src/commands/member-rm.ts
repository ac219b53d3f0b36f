import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { Members } from '../server/members.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rm')
    .alias('remove')
    .description(
      'Removes a member, or withdraws an invite that was not answered. For admins.\n' +
        'API keys that a member made stay valid: svc apikey ls shows them.',
    )
    .argument('<email>', 'whom')
    .addHelpText('after', examples(['svc member rm ben@example.com', 'from the organization in use']))
    .action(remove);
}

async function remove(email: string, _options: unknown, command: Command): Promise<void> {
  const { isJson } = readGlobals(command);
  await Members.use(command, async (members) => {
    const member = await members.find(email);
    const invite = member === undefined ? await members.findInvite(email) : undefined;
    if (member !== undefined) await members.remove(member.user_id);
    else if (invite !== undefined) await members.withdraw(invite.id);
    else throw members.stranger(email);
    const what = member === undefined ? 'invite' : 'member';
    if (isJson) printJson({ removed: what, email });
    else print(what === 'member' ? `${email} is no member any more` : `the invite to ${email} is void`);
  });
}
