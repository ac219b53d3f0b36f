import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('accept')
    .description(
      'Accepts an invite, as the user whose token is used; its address must be the one that was invited.',
    )
    .argument('<token>', 'what svc member invite printed')
    .addHelpText('after', examples(['svc member accept TOKEN', 'you belong to the organization from now on']))
    .action(accept);
}

async function accept(token: string, _options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { connectServer } = await import('../server/connect.ts');
  const { asUser } = await import('../server/remote-credentials.ts');
  const client = await connectServer(globals);
  const joined = await asUser('Invites are accepted by users', () =>
    client.call('invites.accept', { params: { token }, body: {} }),
  );
  if (globals.isJson) return printJson(joined);
  print(`you are ${joined.role} of ${joined.slug}\n  next: export SVC_ORG=${joined.slug}`);
}
