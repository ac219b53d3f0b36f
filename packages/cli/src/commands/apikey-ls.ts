import { Command } from 'commander';
import { examples } from '../examples.ts';
import { databaseOption, loadLocal } from '../local-store.ts';
import { readStoreOrServer } from '../server/store-or-server.ts';
import { printCredentials } from '../terminal/print-credentials.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists the API keys of an organization that were not revoked.')
    .addOption(databaseOption())
    .addHelpText('after', examples(['svc apikey ls --org acme', 'the keys of acme']))
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const { place, server, isJson, chosenOrganization: org } = await readStoreOrServer(command);
  const keys =
    server === undefined
      ? await (await loadLocal(place)).listLocalApiKeys(place, org)
      : await (await import('../server/remote-credentials.ts')).listRemoteApiKeys(server);
  const option = org === undefined ? '' : ` --org ${org}`;
  printCredentials(keys, isJson, `no API keys; make one with: svc apikey create${option}`);
}
