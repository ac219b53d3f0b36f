import { Command } from 'commander';
import { examples } from '../examples.ts';
import { databaseOption, loadLocal } from '../local-store.ts';
import { readStoreOrServer } from '../server/store-or-server.ts';
import { requireEmail } from '../arguments/email.ts';
import { printJson, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('revoke')
    .description('Makes a personal access token worthless, at once and for good.')
    .argument('<id>', 'as svc token ls shows it')
    .option('--user <email>', 'whose; of a server elsewhere: yours')
    .addOption(databaseOption())
    .addHelpText('after', examples(['svc token revoke --user ann@example.com ID', 'a token of one person']))
    .action(revoke);
}

async function revoke(id: string, { user }: { readonly user?: string }, command: Command): Promise<void> {
  const { place, server, isJson } = await readStoreOrServer(command);
  if (server !== undefined) {
    const { refuseOtherUser, revokeRemoteToken } = await import('../server/remote-credentials.ts');
    refuseOtherUser(user, server.apiUrl);
    await revokeRemoteToken(server, id);
    return isJson ? printJson({ id, is_revoked: true }) : report(`token ${id} is revoked`);
  }
  const { revokeLocalToken } = await loadLocal(place);
  const revoked = await revokeLocalToken(place, requireEmail(user), id);
  if (isJson) return printJson({ id: revoked.id, name: revoked.name, is_revoked: true });
  report(`token ${revoked.id} (${revoked.name}) is revoked`);
}
