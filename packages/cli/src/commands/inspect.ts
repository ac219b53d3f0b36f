import { Command } from 'commander';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('inspect')
    .description('Shows everything about a sandbox, as JSON.')
    .argument('<name>', 'the sandbox')
    .addHelpText(
      'after',
      examples(['svc inspect web', 'state, spec, address, how its last run ended, timings']),
    )
    .action(async (name: string, _options: unknown, command: Command) => {
      const engine = await connectEngine(readGlobals(command).dataFolder);
      printJson(await engine.getSandbox(name));
    });
}
