import { Command } from 'commander';
import { examples } from '../examples.ts';
import { asUsage, databaseOption, loadLocal } from '../local-store.ts';
import { readStoreOrServer } from '../server/store-or-server.ts';
import { requireEmail } from '../arguments/email.ts';
import { print, printJson, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('create')
    .description(
      'Makes a personal access token and prints it, this once: the server keeps only its hash.\n' +
        'The user is made when there is none with this address.',
    )
    .option('--user <email>', 'whom it acts for; of a server elsewhere: you')
    .option('--name <text>', 'to recognize it by', 'command line')
    .option('--expire <duration>', 'number and unit: s, m, h, d, w, mo (30 d), y (365 d); never when absent')
    .addOption(databaseOption())
    .addHelpText(
      'after',
      examples(
        ['TOKEN=$(svc token create --user ann@example.com)', 'a token in a variable'],
        ['svc token create --user ann@example.com --expire 12h', 'for half a day'],
        ['svc --context lab token create --name laptop', 'on another server, for yourself'],
      ),
    )
    .action(create);
}

interface CreateOptions {
  readonly user?: string;
  readonly name: string;
  readonly expire?: string;
}

async function create({ user: email, name, expire }: CreateOptions, command: Command): Promise<void> {
  const { place, server, isJson } = await readStoreOrServer(command);
  if (server !== undefined) {
    const { createRemoteToken, refuseOtherUser } = await import('../server/remote-credentials.ts');
    refuseOtherUser(email, server.apiUrl);
    const { secret, ...token } = await createRemoteToken(server, { name, expire }).catch(asUsage);
    const times = { created_at: token.createdAt, expires_at: token.expiresAt };
    if (isJson) return printJson({ id: token.id, name, token: secret, ...times });
    print(secret);
    return report(`token ${token.id}; expires: ${token.expiresAt ?? 'never'}`);
  }
  const { createLocalToken } = await loadLocal(place);
  const made = await createLocalToken(place, requireEmail(email), { name, expire }).catch(asUsage);
  const { id, user, secret, createdAt, expiresAt } = made;
  if (isJson) {
    const shown = { id, user_id: user.id, name, token: secret, created_at: createdAt, expires_at: expiresAt };
    return printJson(shown);
  }
  print(secret);
  report(`token ${id} for ${user.email} in ${place.dataFolder}; expires: ${expiresAt ?? 'never'}`);
}
