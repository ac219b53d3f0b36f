import { Command } from 'commander';
import { parseSeconds } from '../arguments/number.ts';
import { parsePlace } from '../arguments/sandbox-path.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

interface LinkFlags {
  readonly write?: boolean;
  readonly expire?: number;
  readonly owner?: string;
  readonly mode?: string;
  readonly parents?: boolean;
}

const OCTAL = 8;

export function createCommand(): Command {
  return new Command('link')
    .description(
      'Makes a link to a file of a running sandbox and prints it. Every client that has the link may read the file, or with\n' +
        '--write replace it, without a key; a browser may, too. It ends at its time, with the key that made it, and with the sandbox.',
    )
    .argument('<file>', 'NAME:/path')
    .option('--write', 'to write the file, with PUT, instead of reading it')
    .option('--expire <time>', 'until then (90, 10m, 1h, 7d; default: 1h)', parseSeconds)
    .option('--owner <user>', 'of the file that is written: USER or USER:GROUP')
    .option('--mode <octal>', 'of the file that is written, as 0644')
    .option('--parents', 'make the folders that lead to the file that is written')
    .addHelpText(
      'after',
      examples(
        ['curl -OJ "$(svc link web:/var/log/app.log)"', 'fetch a file'],
        ['curl -T shop.sql "$(svc link --write web:/tmp/shop.sql)"', 'send one'],
      ),
    )
    .action(link);
}

async function link(text: string, flags: LinkFlags, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const place = parsePlace(text);
  if (place.kind !== 'remote') throw new UsageError('name a file of a sandbox\n  try: svc link NAME:/path');
  const { connectRunning } = await import('../sandbox/connect-running.ts');
  const { connectServer } = await import('../server/connect.ts');
  const sandbox = await connectRunning(place.name, await connectServer(globals));
  const made = await sandbox.files.link(place.path, {
    method: flags.write === true ? 'PUT' : 'GET',
    ...(flags.expire === undefined ? {} : { expiresInSecs: flags.expire }),
    ...(flags.owner === undefined ? {} : { owner: flags.owner }),
    ...(flags.mode === undefined ? {} : { mode: parseMode(flags.mode) }),
    ...(flags.parents === undefined ? {} : { parents: flags.parents }),
  });
  if (globals.isJson) return printJson(made);
  print(made.url);
  report(`for ${made.method}, until ${made.expiresAt.toISOString()}`);
}

function parseMode(text: string): number {
  if (/^0?[0-7]{3,4}$/.test(text)) return Number.parseInt(text, OCTAL);
  throw new UsageError(`--mode is octal\n  try: svc link --write --mode 0644 NAME:/path`);
}
