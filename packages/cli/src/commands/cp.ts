import { Command } from 'commander';
import { parseCopy } from '../arguments/parse-copy.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('cp')
    .description(
      'Copies files and folders between this machine and a running sandbox. NAME:/path is in the sandbox, - is stdin or stdout.\n' +
        'Into a folder that is there it goes under its own name, as with cp -r; FOLDER/. is what the folder holds.\n' +
        'Permissions and links stay, owners do not.',
    )
    .argument('<from>', 'path, NAME:/path or -')
    .argument('<to>', 'path, NAME:/path or -')
    .addHelpText(
      'after',
      examples(
        ['svc cp ./app web:/srv', 'becomes /srv/app when /srv is there'],
        ['svc cp web:/var/log ./logs', 'a folder out of the sandbox'],
        ['pg_dump shop | svc cp - web:/tmp/shop.sql', 'from a pipe'],
        ['svc cp web:/etc/hosts - | grep web', 'into a pipe'],
      ),
    )
    .action(copy);
}

async function copy(fromText: string, toText: string, _options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const hint =
    'one side is in a sandbox, the other is here\n  try: svc cp FILE NAME:/path, svc cp NAME:/path FILE';
  const { from, to, remote } = parseCopy(fromText, toText, hint);
  const { connectRunning } = await import('../sandbox/connect-running.ts');
  const { connectServer } = await import('../server/connect.ts');
  const transfer = await import('../copy/copy-sandbox.ts');
  const sandbox = await connectRunning(remote.name, await connectServer(globals));
  if (from.kind === 'local') await transfer.upload(sandbox, from.path, remote.path);
  else if (from.kind === 'stream') await transfer.uploadStdin(sandbox, remote.path);
  else if (to.kind === 'local') await transfer.download(sandbox, remote.path, to.path);
  else return await transfer.downloadToStdout(sandbox, remote.path);
  if (globals.isJson) printJson({ from: fromText, to: toText });
}
