import { Command } from 'commander';
import { commandWords } from '../arguments/words.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { addSandboxOptions, toCreateOptions, type SandboxOptions } from '../sandbox/create-options.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  const command = new Command('create')
    .description('Makes a sandbox without starting it, and prints its name.')
    .argument('<image>', 'image reference; - with --snapshot')
    .argument('[command...]', 'what runs whenever it starts, with its own options')
    .option('--name <name>', 'name of the sandbox');
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
  options: SandboxOptions,
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { Sandbox } = await import('@svc/sdk');
  const { withChosenPorts } = await import('../sandbox/choose-ports.ts');
  const { diskSource } = await import('../sandbox/disk-source.ts');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const { image: reference, ...made } = toCreateOptions(
    image,
    commandWords(rest),
    options,
    globals.readVariable,
  );
  const source = await diskSource(client, reference, options.snapshot);
  const asked = {
    ...made,
    ...source,
    ...(options.name === undefined ? {} : { name: options.name }),
    isEphemeral: false,
  };
  const sandbox = await withChosenPorts(asked, options.publish, (chosen) =>
    Sandbox.create({ ...chosen, client, start: false }),
  );
  if (globals.isJson) printJson(sandbox.info);
  else print(sandbox.name);
}
