import { Command } from 'commander';
import { examples } from '../examples.ts';
import { databaseOption, loadLocal } from '../local-store.ts';
import { readStoreOrServer } from '../server/store-or-server.ts';
import { printJson, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('revoke')
    .description('Makes an API key worthless, at once and for good.')
    .argument('<id>', 'as svc apikey ls shows it')
    .addOption(databaseOption())
    .addHelpText('after', examples(['svc apikey revoke --org acme ID', 'a key of acme']))
    .action(revoke);
}

async function revoke(id: string, _options: unknown, command: Command): Promise<void> {
  const { place, server, isJson, chosenOrganization } = await readStoreOrServer(command);
  if (server !== undefined) {
    const { revokeRemoteApiKey } = await import('../server/remote-credentials.ts');
    await revokeRemoteApiKey(server, id);
    return isJson ? printJson({ id, is_revoked: true }) : report(`API key ${id} is revoked`);
  }
  const { revokeLocalApiKey } = await loadLocal(place);
  const revoked = await revokeLocalApiKey(place, chosenOrganization, id);
  if (isJson) return printJson({ id: revoked.id, name: revoked.name, is_revoked: true });
  report(`API key ${revoked.id} (${revoked.name}) is revoked`);
}
