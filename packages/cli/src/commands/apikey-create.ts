import { Command } from 'commander';
import { examples } from '../examples.ts';
import { asUsage, databaseOption, loadLocal } from '../local-store.ts';
import { readStoreOrServer } from '../server/store-or-server.ts';
import { print, printJson, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('create')
    .description('Makes an API key and prints it, this once: the server keeps only its hash.')
    .option('--name <text>', 'to recognize it by', 'command line')
    .option('--expire <duration>', 'number and unit: s, m, h, d, w, mo (30 d), y (365 d); never when absent')
    .addOption(databaseOption())
    .addHelpText(
      'after',
      examples(
        ['KEY=$(svc apikey create)', 'a key for organization default, in a variable'],
        ['svc --context lab apikey create', 'on another server, with your token'],
        ['svc apikey create --org acme --name ci --expire 90d', 'for acme, for 90 days'],
      ),
    )
    .action(create);
}

interface CreateOptions {
  readonly name: string;
  readonly expire?: string;
}

async function create({ name, expire }: CreateOptions, command: Command): Promise<void> {
  const { place, server, isJson, chosenOrganization } = await readStoreOrServer(command);
  const made = await (
    server === undefined
      ? (await loadLocal(place)).createLocalApiKey(place, chosenOrganization, { name, expire })
      : (await import('../server/remote-credentials.ts')).createRemoteApiKey(server, { name, expire })
  ).catch(asUsage);
  const { id, organization, secret, createdAt, expiresAt } = made;
  if (isJson) {
    return printJson({ id, organization, name, key: secret, created_at: createdAt, expires_at: expiresAt });
  }
  print(secret);
  report(
    `API key ${id} for organization ${organization}${server === undefined ? ` in ${place.dataFolder}` : ''}; expires: ${expiresAt ?? 'never'}`,
  );
}
