import { Command } from 'commander';
import { examples } from '../examples.ts';
import { asUsage, databaseOption, loadKeys, readHere } from '../local-store.ts';
import { print, printJson, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('keygen')
    .description(
      'Makes a key for clients. Keys made earlier stay valid. Works whether the server runs or not.\n' +
        'When stdout is no terminal, the key alone goes there, and what there is to say about it to stderr.\n' +
        'Exit codes: 0 made, 1 failed, 2 bad option.',
    )
    .option('--expire <duration>', 'number and unit: s, m, h, d, w, mo (30 d), y (365 d); never when absent')
    .option('--namespace <namespace>', 'limits the key to the sandboxes of one namespace')
    .option('-q, --quiet', 'print the key and nothing else')
    .option('--json', 'print JSON')
    .addOption(databaseOption())
    .addHelpText(
      'after',
      examples(
        ['svc server keygen', 'a key that never expires, for all namespaces'],
        ['export SVC_API_KEY=$(svc server keygen --quiet)', 'in a variable, where clients look for it'],
        ['svc server keygen --expire 30d --namespace ci', 'for the sandboxes of ci, for 30 days'],
      ),
    )
    .action(keygen);
}

interface KeygenOptions {
  readonly expire?: string;
  readonly namespace?: string;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

async function keygen(options: KeygenOptions, command: Command): Promise<void> {
  const { place, isJson } = await readHere(command, 'keys');
  const { createKey } = await loadKeys(place);
  const { expire, namespace } = options;
  const { dataFolder, databaseUrl } = place;
  const created = await createKey(dataFolder, { expire, namespace, databaseUrl }).catch(asUsage);
  if (isJson || options.json === true) {
    return printJson({ token: created.key, expires: created.expiresAt, namespace: created.namespace });
  }
  // Programs and variables get the key and nothing else.
  const isForPeople = process.stdout.isTTY && options.quiet !== true;
  print(isForPeople ? `Token: ${created.key}` : created.key);
  if (options.quiet === true) return;
  const explain = isForPeople ? print : report;
  explain(`Data folder: ${dataFolder}`);
  explain(`Token expires: ${created.expiresAt ?? 'never'}`);
  explain(`Namespace: ${created.namespace === '*' ? '* (all)' : created.namespace}`);
}
