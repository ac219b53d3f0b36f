import { Command } from 'commander';
import { examples } from '../examples.ts';
import { databaseOption, loadLocal, readHere } from '../local-store.ts';
import { printCredentials } from '../terminal/print-credentials.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists the API keys of an organization that were not revoked.')
    .option('--org <name>', 'organization', 'default')
    .addOption(databaseOption())
    .addHelpText('after', examples(['svc apikey ls --org acme', 'the keys of acme']))
    .action(list);
}

async function list({ org }: { readonly org: string }, command: Command): Promise<void> {
  const { place, isJson } = await readHere(command, 'API keys');
  const { listLocalApiKeys } = await loadLocal(place);
  const keys = await listLocalApiKeys(place, org);
  printCredentials(keys, isJson, `no API keys; make one with: svc apikey create --org ${org}`);
}
