import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Preview } from '@svc/sdk';
import { Command } from 'commander';
import { parseSeconds } from '../arguments/number.ts';
import { parsePort } from '../arguments/port.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

interface OpenOptions {
  readonly public?: boolean;
  readonly for?: number;
  readonly browser: boolean;
}

export function createCommand(): Command {
  return new Command('open')
    .description(
      'Prints an address at which a browser finds a port of a sandbox, and opens it where there is a screen.\n' +
        'Without --public only this machine can use it, or every client that has the token in it.',
    )
    .argument('<sandbox>', 'the sandbox')
    .argument('<port>', 'on which something listens there', parsePort)
    .option('--public', 'let everybody use the port who can reach the address; needs --for')
    .option('--for <time>', 'until then only (90, 10m, 1h, 7d; default: 1d)', parseSeconds)
    .option('--no-browser', 'print it only')
    .addHelpText(
      'after',
      examples(
        ['svc open web 8000', 'what listens on port 8000'],
        ['svc open --public --for 1h web 8000', 'for everybody, for an hour'],
        ['svc preview ls web', 'what is open, and until when'],
      ),
    )
    .action(open);
}

async function open(name: string, port: number, options: OpenOptions, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const seconds = options.for;
  if (options.public === true && seconds === undefined)
    throw new UsageError(`what is public needs an end\n  try: svc open --public --for 1h ${name} ${port}`);
  const { Capabilities, Sandbox } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const sandbox = await Sandbox.connect(name, { client });
  const expiry = seconds === undefined ? {} : { expiresInSecs: seconds };
  const shared =
    options.public === true && seconds !== undefined
      ? await sandbox.ports.share(port, { expiresInSecs: seconds })
      : null;
  const url = shared?.url ?? (await sandbox.url(port, expiry));
  if (globals.isJson) printJson({ url, port, public: shared !== null, preview_id: shared?.id ?? null });
  else print(url);
  if (shared !== null) {
    const { previews } = await Capabilities.get({ client });
    reportPreview(name, shared, /(^|\.)localhost$/.test(previews?.domain ?? ''));
  }
  if (sandbox.status !== 'running')
    report(`${name} is ${sandbox.status}; it answers after: svc start ${name}`);
  if (options.browser && globals.browser !== null && !globals.isJson) await openBrowser(globals.browser, url);
}

function reportPreview(name: string, { id, expires_at: end }: Preview, isLocal: boolean): void {
  report(`public until ${end}; it ends with: svc preview revoke ${name} ${id}`);
  if (isLocal)
    report('only this machine reaches it; for others: svc server start --preview-domain preview.example.com');
}

/** Opens an address on this machine. A missing program is no error: the address is printed anyway. */
async function openBrowser(program: string, url: string): Promise<void> {
  if (!/^https?:\/\//.test(url)) return;
  // SAFETY: no shell; the user's own program, and an address that is no option of it.
  const child = spawn(program, [url], { stdio: 'ignore', detached: true });
  await once(child, 'spawn').catch(() => undefined);
  child.unref();
}
