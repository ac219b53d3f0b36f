import { text } from 'node:stream/consumers';
import { Command, Option } from 'commander';
import type { RegistryAuth } from '@svc/engine/client';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatBytes } from '../terminal/amounts.ts';
import { print, printJson } from '../terminal/print.ts';
import { ProgressLine } from '../terminal/progress.ts';
import { UsageError } from '../usage-error.ts';

interface PullOptions {
  readonly policy: 'if_missing' | 'always' | 'never';
  readonly username?: string;
  readonly passwordStdin?: boolean;
}

export function createCommand(): Command {
  return new Command('pull')
    .description('Pulls an image from its registry.')
    .argument('<reference>', 'such as python:3.12, registry/name:tag or name@sha256:…')
    .addOption(
      new Option('--policy <policy>', 'when to ask the registry')
        .choices(['if_missing', 'always', 'never'])
        .default('always'),
    )
    .option('--username <name>', 'user of the registry')
    .option('--password-stdin', 'read the password from stdin, so that no process list shows it')
    .addHelpText(
      'after',
      examples(
        ['svc image pull alpine', 'the newest'],
        ['svc image pull --username me --password-stdin registry/app < password', 'with a login'],
      ),
    )
    .action(pull);
}

async function pull(reference: string, options: PullOptions, command: Command): Promise<void> {
  const { dataFolder, isJson } = readGlobals(command);
  const auth = await readAuth(options);
  const engine = await connectEngine(dataFolder);
  const progress = new ProgressLine();
  const image = await engine
    .pullImage({ reference, policy: options.policy, auth }, progress.show)
    .finally(() => progress.clear());
  if (isJson) printJson(image);
  else print(`${reference}  ${image.digest ?? image.id}  ${formatBytes(image.sizeBytes)}`);
}

async function readAuth({ username, passwordStdin }: PullOptions): Promise<RegistryAuth | null> {
  if (username === undefined && passwordStdin !== true) return null;
  if (username === undefined || passwordStdin !== true)
    throw new UsageError('a login needs both\n  try: --username NAME --password-stdin < FILE');
  return { username, password: (await text(process.stdin)).replace(/\r?\n$/, '') };
}
