import { Command } from 'commander';
import { collectLabel, type Labels } from '../arguments/label.ts';
import { parseGib } from '../arguments/memory.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

interface VolumeOptions {
  readonly capacity?: number;
  readonly label?: Labels;
}

export function createCommand(): Command {
  return new Command('create')
    .description('Makes a volume.')
    .argument('<name>', 'lowercase letters, digits and hyphens')
    .option('--capacity <gib>', 'GiB that its files may take (10, 10G, 1T)', parseGib)
    .option('-l, --label <key=value>', 'to find it by (repeatable)', collectLabel)
    .addHelpText(
      'after',
      examples(
        ['svc volume create data --capacity 10G', 'at most 10 GiB'],
        ['svc run -v data:/data python sh -c "ls /data"', 'then: use it'],
      ),
    )
    .action(create);
}

async function create(name: string, { capacity, label }: VolumeOptions, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Volume } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const volume = await Volume.create({
    client: await connectServer(globals),
    name,
    ...(capacity === undefined ? {} : { capacityGib: capacity }),
    ...(label === undefined ? {} : { labels: label }),
  });
  if (globals.isJson) printJson(volume.info);
  else print(name);
}
