import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';
import { readSecret } from '../terminal/read-secret.ts';

export function createCommand(): Command {
  return new Command('set')
    .description(
      'Sets a secret to what stdin has, or to what you type unseen. Sandboxes that use it have it within seconds.',
    )
    .argument('<name>', 'such as OPENAI_API_KEY')
    .option('--org <slug>', 'organization that it belongs to')
    .addHelpText(
      'after',
      examples(
        ['svc secret set OPENAI_API_KEY', 'asks for the value'],
        ['svc secret set OPENAI_API_KEY < key', 'the value is in a file'],
      ),
    )
    .action(set);
}

async function set(name: string, { org }: { readonly org?: string }, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Secrets } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const { inOrganization } = await import('../server/remote-credentials.ts');
  const client = await connectServer(globals);
  const value = await readSecret(`${name}: `);
  const secret = await inOrganization(client, org, (options) => Secrets.set(name, value, options));
  if (globals.isJson) printJson(secret);
  else print(name);
}
