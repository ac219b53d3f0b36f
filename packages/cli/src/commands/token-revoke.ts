import { Command } from 'commander';
import { examples } from '../examples.ts';
import { databaseOption, loadLocal, readHere } from '../local-store.ts';
import { printJson, tell } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('revoke')
    .description('Makes a personal access token worthless, at once and for good.')
    .argument('<id>', 'as svc token ls shows it')
    .requiredOption('--user <email>', 'whose')
    .addOption(databaseOption())
    .addHelpText('after', examples(['svc token revoke --user ann@example.com ID', 'a token of one person']))
    .action(revoke);
}

async function revoke(id: string, { user }: { readonly user: string }, command: Command): Promise<void> {
  const { place, isJson } = await readHere(command, 'tokens');
  const { revokeLocalToken } = await loadLocal(place);
  const revoked = await revokeLocalToken(place, user, id);
  if (isJson) return printJson({ id: revoked.id, name: revoked.name, is_revoked: true });
  tell(`token ${revoked.id} (${revoked.name}) is revoked`);
}
