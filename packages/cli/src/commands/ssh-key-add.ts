import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename } from 'node:path';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import type { Client, SshKey } from '@svc/sdk';
import { examples } from '../examples.ts';
import { readGlobals, type Globals } from '../globals.ts';
import { listOwnKeys } from '../ssh/own-keys.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  return new Command('add')
    .description(
      'Registers public keys: those of ~/.ssh unless files are named. Keys that are registered already stay.',
    )
    .argument('[file...]', 'a .pub file, or - for stdin')
    .option('--name <text>', 'to recognize it by (default: what the key says of itself)')
    .addHelpText(
      'after',
      examples(
        ['svc ssh-key add', 'every ~/.ssh/*.pub'],
        ['svc ssh-key add ~/.ssh/work.pub', 'this one'],
        ['ssh-add -L | head -1 | svc ssh-key add -', 'the first one of the agent'],
      ),
    )
    .action(add);
}

interface NewKey {
  readonly name: string;
  readonly publicKey: string;
}

async function add(
  files: readonly string[],
  { name }: { readonly name?: string },
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const keys = files.length === 0 ? await keysOfHome(globals) : (await Promise.all(files.map(read))).flat();
  if (name !== undefined && keys.length > 1)
    throw new UsageError(`one name, but ${keys.length} keys\n  try: svc ssh-key add --name '${name}' FILE`);
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const added: SshKey[] = [];
  for (const key of keys) {
    const made = await register(client, { ...key, name: name ?? key.name });
    if (made !== null) added.push(made);
  }
  if (globals.isJson) return printJson(added);
  for (const key of added) print(`${key.id}  ${key.name}  ${key.fingerprint}`);
  if (added.length > 0 && process.stderr.isTTY) report('next: svc ssh NAME');
}

/** Null: the user has it already. */
async function register(client: Client, key: NewKey): Promise<SshKey | null> {
  const { SshKeys, SvcError } = await import('@svc/sdk');
  const { asUser } = await import('../ssh/as-user.ts');
  try {
    return await asUser(SshKeys.add(key, { client }));
  } catch (error) {
    if (!SvcError.is(error, 'name_already_exists')) throw error;
    report(`${key.name} is registered already`);
    return null;
  }
}

async function keysOfHome({ sshFolder }: Globals): Promise<readonly NewKey[]> {
  const keys = await listOwnKeys(sshFolder);
  if (keys.length === 0)
    throw new UsageError(`there is no public key in ${sshFolder}\n  try: ssh-keygen -t ed25519`);
  return keys.map(({ line, publicPath }) => toKey(line, basename(publicPath, '.pub')));
}

async function read(file: string): Promise<readonly NewKey[]> {
  const content = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  // SAFETY: a private key never leaves this machine, not even to be refused.
  if (content.includes('PRIVATE KEY'))
    throw new UsageError(
      `${file} is a private key, which must stay secret\n  try: svc ssh-key add ${file}.pub`,
    );
  const lines = content.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  if (lines.length === 0) throw new UsageError(`${file} holds no key\n  try: ssh-keygen -t ed25519`);
  return lines.map((line) => toKey(line, file === '-' ? 'key' : basename(file, '.pub')));
}

/** Most keys end with who made them and where. */
function toKey(line: string, fallback: string): NewKey {
  const [, , ...comment] = line.trim().split(/\s+/);
  const name = comment.join(' ').trim();
  return {
    name: (name === '' ? `${fallback} on ${hostname()}` : name).slice(0, 100),
    publicKey: line.trim(),
  };
}
