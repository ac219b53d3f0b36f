import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { keyPath, readContexts, requireContextName, writeContexts } from '../context/context-file.ts';
import { readKey } from '../context/read-key.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

interface AddOptions {
  readonly url: string;
  readonly keyEnv?: string;
  readonly keyFile?: string;
  readonly keyStdin?: boolean;
  readonly use?: boolean;
}

export function createCommand(): Command {
  return new Command('add')
    .description(
      'Adds a context, or replaces the one of this name. A key is kept in a file that only you can read, or not at all.',
    )
    .argument('<name>', 'to recognize it by')
    .requiredOption('--url <url>', 'address of the server')
    .option('--key-env <variable>', 'the key is in this variable whenever it is needed')
    .option('--key-file <file>', 'the key is in this file, which only you may read')
    .option('--key-stdin', 'read the key from stdin and keep it')
    .option('--use', 'and use it from now on')
    .addHelpText(
      'after',
      examples(
        ['svc context add lab --url https://lab.example.com --key-stdin --use < key', 'keep the key'],
        ['svc context add ci --url http://10.0.0.5:5555 --key-env CI_KEY', 'keep only its place'],
      ),
    )
    .action(add);
}

async function add(name: string, options: AddOptions, command: Command): Promise<void> {
  const globals = readGlobals(command);
  requireContextName(name);
  const url = requireUrl(options.url);
  const file = await readContexts(globals.contextFolder);
  const apiKeyRef = await keepKey(globals.contextFolder, name, options);
  if (apiKeyRef?.startsWith('file:') === true) await readKey(apiKeyRef, globals);
  const context = {
    url,
    ...(apiKeyRef === undefined ? {} : { apiKeyRef }),
    ...(globals.chosenOrganization === undefined ? {} : { organization: globals.chosenOrganization }),
  };
  const active = options.use === true ? name : file.active;
  await writeContexts(globals.contextFolder, { active, contexts: { ...file.contexts, [name]: context } });
  if (globals.isJson) printJson({ name, ...context, is_active: active === name });
  else
    print(
      active === name ? `${name} is in use: ${url}` : `${name} is added; use it: svc context use ${name}`,
    );
}

function requireUrl(text: string): string {
  const isFine = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (isFine) return text.replace(/\/+$/, '');
  throw new UsageError(
    `the address of a server is like https://svc.example.com, not '${text}'\n  try: --url http://127.0.0.1:5555`,
  );
}

/** Stores the key and returns its place; undefined: there is no key. */
async function keepKey(
  folder: string,
  name: string,
  { keyEnv, keyFile, keyStdin }: AddOptions,
): Promise<string | undefined> {
  if ([keyEnv, keyFile, keyStdin].filter((given) => given !== undefined).length > 1)
    throw new UsageError('a key is in one place\n  try: only one of --key-env, --key-file and --key-stdin');
  const path = keyPath(folder, name);
  if (keyStdin === true) {
    const key = (await text(process.stdin)).trim();
    if (key === '')
      throw new UsageError('no key came on stdin\n  try: svc context add NAME --url URL --key-stdin < FILE');
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    // SAFETY: created anew, so that the mode applies even where an older file was readable by others.
    await rm(path, { force: true });
    await writeFile(path, `${key}\n`, { mode: 0o600, flag: 'wx' });
    return `file:${path}`;
  }
  await rm(path, { force: true });
  if (keyEnv !== undefined) return `env:${keyEnv}`;
  return keyFile === undefined ? undefined : `file:${resolve(keyFile)}`;
}
