import { Command } from 'commander';
import { examples } from '../examples.ts';
import { databaseOption, loadLocal, readHere } from '../local-store.ts';
import { printCredentials } from '../terminal/print-credentials.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists the personal access tokens of a user that were not revoked.')
    .requiredOption('--user <email>', 'whose')
    .addOption(databaseOption())
    .addHelpText('after', examples(['svc token ls --user ann@example.com', 'the tokens of one person']))
    .action(list);
}

async function list({ user }: { readonly user: string }, command: Command): Promise<void> {
  const { place, isJson } = await readHere(command, 'tokens');
  const { listLocalTokens } = await loadLocal(place);
  const tokens = await listLocalTokens(place, user);
  printCredentials(tokens, isJson, `no tokens; make one with: svc token create --user ${user}`);
}
