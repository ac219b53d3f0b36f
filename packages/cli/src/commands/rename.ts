import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rename')
    .description('Gives a sandbox another name, also while it runs.')
    .argument('<name>', 'the sandbox')
    .argument('<new-name>', 'what to call it')
    .option('--slug <slug>', 'another slug as well: the name in addresses')
    .addHelpText('after', examples(['svc rename web shop', 'web is called shop from now on']))
    .action(rename);
}

async function rename(
  name: string,
  newName: string,
  { slug }: { readonly slug?: string },
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { connectSandbox } = await import('../server/connect.ts');
  const sandbox = await connectSandbox(globals, name);
  await sandbox.rename({ name: newName, ...(slug === undefined ? {} : { slug }) });
  if (globals.isJson) printJson(sandbox.info);
  else print(sandbox.name);
}
