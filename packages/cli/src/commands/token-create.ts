import { Command } from 'commander';
import { examples } from '../examples.ts';
import { asUsage, databaseOption, loadLocal, readHere } from '../local-store.ts';
import { print, printJson, tell } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('create')
    .description(
      'Makes a personal access token and prints it, this once: the server keeps only its hash.\n' +
        'The user is made when there is none with this address.',
    )
    .requiredOption('--user <email>', 'whom it acts for')
    .option('--name <text>', 'to recognize it by', 'command line')
    .option('--expire <duration>', 'number and unit: s, m, h, d, w, mo (30 d), y (365 d); never when absent')
    .addOption(databaseOption())
    .addHelpText(
      'after',
      examples(
        ['TOKEN=$(svc token create --user ann@example.com)', 'a token in a variable'],
        ['svc token create --user ann@example.com --expire 12h', 'for half a day'],
      ),
    )
    .action(create);
}

interface CreateOptions {
  readonly user: string;
  readonly name: string;
  readonly expire?: string;
}

async function create({ user: email, name, expire }: CreateOptions, command: Command): Promise<void> {
  const { place, isJson } = await readHere(command, 'tokens');
  const { createLocalToken } = await loadLocal(place);
  const made = await createLocalToken(place, email, { name, expire }).catch(asUsage);
  const { id, user, secret, createdAt, expiresAt } = made;
  if (isJson) {
    const shown = { id, user_id: user.id, name, token: secret, created_at: createdAt, expires_at: expiresAt };
    return printJson(shown);
  }
  print(secret);
  tell(`token ${id} for ${user.email}; expires: ${expiresAt ?? 'never'}`);
}
