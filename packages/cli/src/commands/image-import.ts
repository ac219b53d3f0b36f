import { resolve } from 'node:path';
import { Command } from 'commander';
import { connectImages } from '../engine/connect-images.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatBytes } from '../terminal/amounts.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { ProgressLine } from '../terminal/progress.ts';

export function createCommand(): Command {
  return new Command('import')
    .description('Makes an image from a folder, a tar, an OCI layout or a docker archive on this host.')
    .argument('<path>', 'the folder or file')
    .argument('<reference>', 'what to call the image')
    .addHelpText(
      'after',
      examples(
        ['svc image import ./rootfs my/app:1', 'a root file system'],
        ['svc image import app.tar my/app', 'docker save'],
      ),
    )
    .action(importImage);
}

async function importImage(
  path: string,
  reference: string,
  _options: unknown,
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const engine = await connectImages(globals);
  const progress = new ProgressLine();
  // SAFETY: the engine reads the path as root; only root can open its socket.
  const image = await engine.images
    .importImage({ path: resolve(path), reference }, progress.show)
    .finally(() => progress.clear());
  if (globals.isJson) printJson(image);
  else {
    print(`${reference}  ${image.id}  ${formatBytes(image.sizeBytes)}`);
    report(`data in ${globals.dataFolder}`);
  }
}
