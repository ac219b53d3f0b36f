import { Command } from 'commander';
import { connectImages } from '../engine/connect-images.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatAge, formatBytes } from '../terminal/amounts.ts';
import { print, printJson, tell } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .description('Lists the images on this host.')
    .addHelpText('after', examples(['svc image ls', 'all images'], ['svc image ls -o json', 'for programs']))
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const engine = await connectImages(globals);
  const images = await engine.listImages();
  if (globals.isJson) return printJson(images);
  if (images.length === 0) return tell('no images; make some with: svc image build-demo');
  const now = Date.now();
  const rows = images.flatMap((image) =>
    (image.references.length > 0 ? image.references : ['-']).map((reference) => [
      reference,
      image.id.replace('sha256:', '').slice(0, 12),
      formatBytes(image.sizeBytes),
      String(image.layers),
      formatAge(image.createdAt, now),
    ]),
  );
  print(formatTable(['REFERENCE', 'ID', 'SIZE', 'LAYERS', 'AGE'], rows));
}
