import { Command } from 'commander';
import { databaseOption, loadLocal, readLocal } from '../local-store.ts';

/** Started by `svc backup` as the server's user: writes the store and the keys to standard output. */
export function createCommand(): Command {
  return new Command('save-server-files')
    .description('Writes the store and the keys of the server, for svc backup.')
    .option('--secrets-key <file>', 'as for svc server start')
    .addOption(databaseOption())
    .action(save);
}

async function save(options: { readonly secretsKey?: string }, command: Command): Promise<void> {
  const { place } = readLocal(command);
  const { saveServerFiles } = await loadLocal(place);
  await saveServerFiles(place, options, async (bytes) => {
    await new Promise<void>((resolve, reject) =>
      process.stdout.write(bytes, (error) => (error ? reject(error) : resolve())),
    );
  });
}
