import { Command } from 'commander';
import { examples } from '../examples.ts';
import { databaseOption, loadLocal } from '../local-store.ts';
import { readStoreOrServer } from '../server/store-or-server.ts';
import { requireEmail } from '../arguments/email.ts';
import { printCredentials } from '../terminal/print-credentials.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists the personal access tokens of a user that were not revoked.')
    .option('--user <email>', 'whose; of a server elsewhere: yours')
    .addOption(databaseOption())
    .addHelpText('after', examples(['svc token ls --user ann@example.com', 'the tokens of one person']))
    .action(list);
}

async function list({ user }: { readonly user?: string }, command: Command): Promise<void> {
  const { place, server, isJson } = await readStoreOrServer(command);
  if (server !== undefined) {
    const { listRemoteTokens, refuseOtherUser } = await import('../server/remote-credentials.ts');
    refuseOtherUser(user, server.apiUrl);
    return printCredentials(await listRemoteTokens(server), isJson, 'no tokens');
  }
  const { listLocalTokens } = await loadLocal(place);
  const tokens = await listLocalTokens(place, requireEmail(user));
  printCredentials(tokens, isJson, `no tokens; make one with: svc token create --user ${user}`);
}
