import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('inspect')
    .description('Shows everything about sandboxes, as JSON: one object, or a list of several.')
    .argument('<name...>', 'the sandboxes')
    .addHelpText(
      'after',
      examples(
        ['svc inspect web', 'status, what it was made of, why it failed'],
        ['svc inspect web db', 'a list'],
      ),
    )
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { Sandbox } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const client = await connectServer(readGlobals(command));
      const found = await Promise.all(
        names.map(async (name) => (await Sandbox.connect(name, { client })).info),
      );
      printJson(found.length === 1 ? found[0] : found);
    });
}
