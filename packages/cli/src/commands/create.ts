import { Command } from 'commander';
import type { Client, CreateOptions } from '@svc/sdk';
import { commandWords } from '../arguments/words.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { addSandboxOptions, toCreateOptions, type SandboxOptions } from '../sandbox/create-options.ts';
import { print, printJson } from '../terminal/print.ts';

interface CreateCommandOptions extends SandboxOptions {
  readonly snapshot?: string;
}

export function createCommand(): Command {
  const command = new Command('create')
    .description('Makes a sandbox without starting it, and prints its name.')
    .argument('<image>', 'image reference; - with --snapshot')
    .argument('[command...]', 'what runs whenever it starts, with its own options')
    .option('--name <name>', 'name of the sandbox')
    .option('--snapshot <name>', 'begin with the disk of this snapshot');
  return addSandboxOptions(command)
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        ['svc create --name web python python3 -m http.server', 'then: svc start web'],
        ['svc create --name copy --snapshot clean -', 'from a snapshot'],
      ),
    )
    .action(create);
}

async function create(
  image: string,
  rest: readonly string[],
  options: CreateCommandOptions,
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { Sandbox } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const { image: reference, ...made } = toCreateOptions(
    image,
    commandWords(rest),
    options,
    globals.readVariable,
  );
  const source = await sourceOf(client, reference, options.snapshot);
  const sandbox = await Sandbox.create({
    ...made,
    ...source,
    client,
    start: false,
    ...(options.name === undefined ? {} : { name: options.name }),
    isEphemeral: false,
  });
  if (globals.isJson) printJson(sandbox.info);
  else print(sandbox.name);
}

async function sourceOf(
  client: Client,
  image: string,
  snapshot: string | undefined,
): Promise<Pick<CreateOptions, 'image' | 'snapshotId'>> {
  if (snapshot === undefined) return { image };
  return { snapshotId: (await client.call('snapshots.getByName', { params: { name: snapshot } })).id };
}
