import { Command } from 'commander';
import { examples } from '../examples.ts';
import { databaseOption, loadLocal, readHere } from '../local-store.ts';
import { printJson, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rotate-secrets')
    .description(
      'Makes a new key for secrets in the database and seals all of them with it. Works while the server runs.\n' +
        'The key before stays in the key file until the next rotation. Run as root or as the user of the server.',
    )
    .option('--secrets-key <file>', 'as for svc server start')
    .option('--reseal-only', 'make no key: use the first one of the file, which was put there by hand')
    .addOption(databaseOption())
    .addHelpText(
      'after',
      examples(
        ['svc server rotate-secrets', 'a new key, used at once'],
        ['svc server rotate-secrets --reseal-only', 'after the key file was changed on every machine'],
      ),
    )
    .action(rotate);
}

async function rotate(
  options: { readonly secretsKey?: string; readonly resealOnly?: boolean },
  command: Command,
): Promise<void> {
  const { place, isJson } = await readHere(command, 'secrets');
  const { rotateSecrets } = await loadLocal(place);
  const { secretsKey: keyPath, resealOnly: isResealOnly = false } = options;
  const count = await rotateSecrets(place, { keyPath, isResealOnly });
  if (isJson) return printJson({ resealed: count });
  report(`${count} secrets are sealed again (data in ${place.dataFolder})`);
}
