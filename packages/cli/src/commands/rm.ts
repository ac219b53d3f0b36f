import { Command } from 'commander';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description('Removes sandboxes with their disks and logs. Images and volumes stay.')
    .argument('<name...>', 'the sandboxes')
    .option('-f, --force', 'also when it runs')
    .addHelpText('after', examples(['svc rm web', 'a stopped sandbox'], ['svc rm -f web', 'a running one']))
    .action(remove);
}

async function remove(
  names: readonly string[],
  options: { readonly force?: boolean },
  command: Command,
): Promise<void> {
  const { dataFolder, isJson } = readGlobals(command);
  const engine = await connectEngine(dataFolder);
  for (const name of names) {
    // The engine removes in any state and succeeds without a sandbox; a person who mistypes wants to hear of it.
    const { state } = await engine.getSandbox(name);
    if (options.force !== true && (state === 'running' || state === 'starting'))
      throw new UsageError(`sandbox ${name} is ${state}\n  try: svc rm -f ${name}`);
    await engine.removeSandbox(name);
    if (!isJson) print(name);
  }
  if (isJson) printJson({ removed: names });
}
