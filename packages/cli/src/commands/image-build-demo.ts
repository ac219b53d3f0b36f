import { Command } from 'commander';
import { connectImages } from '../engine/connect-images.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatBytes } from '../terminal/amounts.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { ProgressLine } from '../terminal/progress.ts';

export function createCommand(): Command {
  return new Command('build-demo')
    .description(
      'Makes images from Debian packages, without a registry: python, node, base; code when it is named.',
    )
    .argument('[name...]', 'which ones (default: python, node and base)')
    .option('--force', 'make them anew')
    .addHelpText(
      'after',
      examples(
        ['svc image build-demo', 'python, node and base'],
        ['svc image build-demo python', 'one'],
        [
          'svc image build-demo code',
          'numpy, pandas, matplotlib and a Jupyter kernel: a gigabyte, and minutes',
        ],
      ),
    )
    .action(build);
}

async function build(
  names: readonly string[],
  options: { readonly force?: boolean },
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const engine = await connectImages(globals);
  const progress = new ProgressLine();
  const request = { force: options.force === true, ...(names.length > 0 ? { names } : {}) };
  const images = await engine.images.buildDemoImages(request, progress.show).finally(() => progress.clear());
  if (globals.isJson) return printJson(images);
  for (const image of images) print(`${image.references.join(', ')}  ${formatBytes(image.sizeBytes)}`);
  report(`data in ${globals.dataFolder}`);
}
