import { Command } from 'commander';
import type { NewPreview } from '@svc/sdk';
import { parseSeconds } from '../arguments/number.ts';
import { parsePort } from '../arguments/port.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { previewExpiry } from '../terminal/print-previews.ts';

const TOKEN_NAME = 'svc_preview_token';

export function createCommand(): Command {
  return new Command('create')
    .description(
      'Makes an address for one port of a sandbox and prints it, with the token that opens it, this once.\n' +
        'Every client that has the address may use the port.',
    )
    .argument('<sandbox>', 'the sandbox')
    .argument('<port>', 'on which something listens there', parsePort)
    .option(
      '--expire <time>',
      'until then only (90, 10m, 1h, 7d; default: until it is revoked)',
      parseSeconds,
    )
    .addHelpText(
      'after',
      examples(
        ['svc preview create web 3000', 'then open what it prints'],
        ['curl "$(svc preview create --expire 1h web 8000)"', 'for an hour'],
      ),
    )
    .action(create);
}

async function create(
  name: string,
  port: number,
  { expire }: { readonly expire?: number },
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { connectSandbox } = await import('../server/connect.ts');
  const sandbox = await connectSandbox(globals, name);
  const made = await sandbox.ports.preview(port, expire === undefined ? {} : { expiresInSecs: expire });
  if (globals.isJson) return printJson(made);
  print(addressOf(made));
  report(
    `preview ${made.id}; expires: ${previewExpiry(made)}; it ends with: svc preview revoke ${name} ${made.id}`,
  );
  if (sandbox.status !== 'running')
    report(`${name} is ${sandbox.status}; it answers after: svc start ${name}`);
}

function addressOf({ url, token }: NewPreview): string {
  const address = new URL(url);
  if (token !== null) address.searchParams.set(TOKEN_NAME, token);
  return address.href;
}
