import { Command } from 'commander';
import { createCommand as createBuildDemo } from './image-build-demo.ts';
import { createCommand as createImport } from './image-import.ts';
import { createCommand as createInspect } from './image-inspect.ts';
import { createCommand as createLs } from './image-ls.ts';
import { createCommand as createPrune } from './image-prune.ts';
import { createCommand as createPull } from './image-pull.ts';
import { createCommand as createRm } from './image-rm.ts';

export function createCommand(): Command {
  const image = new Command('image').description('Images that sandboxes are made from.');
  for (const create of [
    createLs,
    createPull,
    createBuildDemo,
    createImport,
    createInspect,
    createRm,
    createPrune,
  ])
    image.addCommand(create());
  return image;
}
