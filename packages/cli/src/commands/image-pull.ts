import { text } from 'node:stream/consumers';
import type { RegistryAuth } from '@svc/contract/orchestrator';
import { Command, Option } from 'commander';
import { isServerMeant } from '../context/is-server-meant.ts';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals, type Globals } from '../globals.ts';
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
    .description(
      'Pulls an image from its registry: on the server of --context, of SVC_API_URL or of the context in use, else on this machine.',
    )
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
        ['svc image pull alpine', 'the newest; svc pull is the same'],
        ['svc --context lab image pull alpine', 'on another server, for the sandboxes of your organization'],
        ['svc image pull --username me --password-stdin registry/app < password', 'with a login'],
      ),
    )
    .action(pull);
}

async function pull(reference: string, options: PullOptions, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const auth = await readAuth(options);
  const pullIt = (await isServerMeant(globals)) ? pullOnServer : pullHere;
  const { digest, sizeBytes, image } = await pullIt(globals, reference, options.policy, auth);
  if (globals.isJson) printJson(image);
  else print(`${reference}  ${digest}  ${formatBytes(sizeBytes)}`);
}

interface Pulled {
  readonly digest: string;
  readonly sizeBytes: number;
  /** All fields, for programs. */
  readonly image: object;
}

async function pullHere(
  { dataFolder }: Globals,
  reference: string,
  policy: PullOptions['policy'],
  auth: RegistryAuth | null,
): Promise<Pulled> {
  const engine = await connectEngine(dataFolder);
  const progress = new ProgressLine();
  const image = await engine.images
    .pullImage({ reference, policy, auth }, progress.show)
    .finally(() => progress.clear());
  return { digest: image.digest ?? image.id, sizeBytes: image.sizeBytes, image };
}

async function pullOnServer(
  globals: Globals,
  reference: string,
  policy: PullOptions['policy'],
  auth: RegistryAuth | null,
): Promise<Pulled> {
  const { Images } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const progress = new ProgressLine();
  const image = await Images.pull(reference, {
    client: await connectServer(globals),
    policy,
    onProgress: progress.showFetch,
    ...(auth === null ? {} : { registry: { mode: 'inline', ...auth } }),
  }).finally(() => progress.clear());
  return { digest: image.digest ?? '', sizeBytes: image.size_bytes, image };
}

async function readAuth({ username, passwordStdin }: PullOptions): Promise<RegistryAuth | null> {
  if (username === undefined && passwordStdin !== true) return null;
  if (username === undefined || passwordStdin !== true)
    throw new UsageError('a login needs both\n  try: --username NAME --password-stdin < FILE');
  return { username, password: (await text(process.stdin)).replace(/\r?\n$/, '') };
}
