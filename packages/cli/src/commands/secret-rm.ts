import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description('Forgets secrets that no sandbox refers to.')
    .argument('<name...>', 'as svc secret ls shows them')
    .addHelpText('after', examples(['svc secret rm OPENAI_API_KEY', 'forget it']))
    .action(remove);
}

async function remove(names: readonly string[], _options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Secrets } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const { inOrganization } = await import('../server/remote-credentials.ts');
  const client = await connectServer(globals);
  for (const name of names) {
    await inOrganization(client, 'Secrets are kept by users', (options) => Secrets.remove(name, options));
    if (!globals.isJson) print(name);
  }
  if (globals.isJson) printJson({ removed: names });
}
