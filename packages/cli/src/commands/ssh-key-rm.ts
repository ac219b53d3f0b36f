import { Command } from 'commander';
import type { SshKey } from '@svc/sdk';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description('Revokes public keys. Sessions that they opened end within a minute.')
    .argument('<key...>', 'id, name or fingerprint, as svc ssh-key ls shows them')
    .addHelpText('after', examples(['svc ssh-key rm ada@laptop', 'by its name']))
    .action(remove);
}

async function remove(words: readonly string[], _options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { SshKeys } = await import('@svc/sdk');
  const { asUser } = await import('../ssh/as-user.ts');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const keys = await asUser(SshKeys.list({ client }));
  const found = words.map((word) => findKey(keys, word));
  for (const { id, name } of found) {
    await SshKeys.remove(id, { client });
    if (!globals.isJson) print(name);
  }
  if (globals.isJson) printJson({ removed: found.map(({ id }) => id) });
}

/** @throws UsageError unless exactly one key matches */
function findKey(keys: readonly SshKey[], word: string): SshKey {
  const found = keys.filter(({ id, name, fingerprint }) => [id, name, fingerprint].includes(word));
  const [key] = found;
  if (key !== undefined && found.length === 1) return key;
  const why =
    key === undefined ? `you have no SSH key '${word}'` : `${found.length} SSH keys are named '${word}'`;
  throw new UsageError(`${why}\n  try: svc ssh-key ls`);
}
