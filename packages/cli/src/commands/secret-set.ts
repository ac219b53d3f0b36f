import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import { collectSecretHost } from '../arguments/secret.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';
import { readSecret } from '../terminal/read-secret.ts';

export function createCommand(): Command {
  return new Command('set')
    .description(
      'Sets a secret to what stdin has, or to what you type unseen. Sandboxes that use it have it\nwithin seconds, and may send it to the hosts given here and to no others.',
    )
    .argument('<name>', 'such as OPENAI_API_KEY')
    .requiredOption(
      '--host <host>',
      'who may be sent it: api.example.com, or *.example.com (repeatable)',
      collectSecretHost,
    )
    .option(
      '--ca <file>',
      'an authority (PEM) that sandboxes which use it may trust beside those of the host',
    )
    .addHelpText(
      'after',
      examples(
        ['svc secret set OPENAI_API_KEY --host api.openai.com', 'asks for the value'],
        ['svc secret set OPENAI_API_KEY --host api.openai.com < key', 'the value is in a file'],
        [
          "svc secret set TOKEN --host git.example --host '*.git.example' --ca ca.pem",
          'hosts with an authority of their own',
        ],
      ),
    )
    .action(set);
}

interface Options {
  readonly host: readonly string[];
  readonly ca?: string;
}

async function set(name: string, { host: hosts, ca }: Options, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Secrets } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const { inOrganization } = await import('../server/remote-credentials.ts');
  const client = await connectServer(globals);
  const trusted = ca === undefined ? {} : { authorities: [await readFile(ca, 'utf8')] };
  const value = await readSecret(`${name}: `);
  const secret = await inOrganization(client, 'Secrets are kept by users', (options) =>
    Secrets.set(name, { value, hosts, ...trusted }, options),
  );
  if (globals.isJson) printJson(secret);
  else print(name);
}
