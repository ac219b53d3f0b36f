import { Argument, Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { Members, ROLES, type Role } from '../server/members.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('role')
    .description('Changes what a member may do. For admins; only owners make and unmake owners.')
    .addArgument(new Argument('<email>', 'whose'))
    .addArgument(new Argument('<role>', 'each may do what those before it may').choices(ROLES))
    .addHelpText('after', examples(['svc member role ben@example.com admin', 'Ben may invite others']))
    .action(setRole);
}

async function setRole(email: string, role: Role, _options: unknown, command: Command): Promise<void> {
  const { isJson } = readGlobals(command);
  await Members.use(command, async (members) => {
    const member = await members.find(email);
    if (member === undefined) throw members.stranger(email);
    await members.setRole(member.user_id, role);
    if (isJson) printJson({ user_id: member.user_id, email: member.email, role });
    else print(`${member.email} is ${role} of ${members.organization}`);
  });
}
