import { Command } from 'commander';
import { parseCopy } from '../arguments/parse-copy.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('cp')
    .description(
      'Copies files and folders between this machine and a volume; no sandbox is needed. VOLUME:/path is in the volume,\n' +
        '- is stdin or stdout.',
    )
    .argument('<from>', 'path, VOLUME:/path or -')
    .argument('<to>', 'path, VOLUME:/path or -')
    .addHelpText(
      'after',
      examples(
        ['svc volume cp ./models data:/', 'a folder into a volume'],
        ['svc volume cp data:/out.csv -', 'to stdout'],
      ),
    )
    .action(copy);
}

async function copy(fromText: string, toText: string, _options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const hint =
    'one side is in a volume, the other is here\n  try: svc volume cp FILE VOLUME:/path, svc volume cp VOLUME:/path FILE';
  const { from, to, remote } = parseCopy(fromText, toText, hint);
  const { Volume } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const transfer = await import('../copy/copy-volume.ts');
  const volume = await Volume.get(remote.name, { client: await connectServer(globals) });
  if (from.kind === 'local') await transfer.uploadToVolume(volume, from.path, remote.path);
  else if (from.kind === 'stream') await transfer.uploadStdinToVolume(volume, remote.path);
  else if (to.kind === 'local') await transfer.downloadFromVolume(volume, remote.path, to.path);
  else return await transfer.downloadVolumeToStdout(volume, remote.path);
  if (globals.isJson) printJson({ from: fromText, to: toText });
}
