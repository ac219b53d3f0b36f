import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import { allDemoImages, buildDemoImages, usualDemoImages } from '../images/build-demo.ts';
import type { DemoImage } from '../images/demo-recipes.ts';
import type { Images } from '../images/images.ts';
import type { EngineConfig } from './config.ts';
import { findNpm } from './find-npm.ts';
import type { BuildDemo } from './image-routes.ts';

/** `svc/node` contains the Node binary that runs this engine, and npm when the host has one that can be copied. */
export function demoBuilder(config: EngineConfig, images: Images): BuildDemo {
  return async ({ names, force }, onProgress, signal) =>
    await buildDemoImages(images, {
      names: names === undefined ? usualDemoImages() : toNames(names),
      force,
      workFolder: join(config.dataFolder, 'images', 'demo'),
      nodeBinary: process.execPath,
      npmFolder: await findNpm(config.path),
      environment: config.proxy,
      onProgress,
      signal,
    });
}

/** An earlier name of `code`, which documents and scripts may still have. */
const FORMER_NAMES: Readonly<Record<string, DemoImage>> = { 'svc/data': 'svc/code' };

/** `python` and `svc/python` both name the image. */
function toNames(names: readonly string[]): readonly DemoImage[] {
  return names.map((given) => {
    const name = given.startsWith('svc/') ? given : `svc/${given}`;
    const found = allDemoImages().find((known) => known === (FORMER_NAMES[name] ?? name));
    if (found !== undefined) return found;
    const known = allDemoImages().join(', ');
    throw new PlatformError('invalid_request', `names: ${given} is not a demo image; there are ${known}`);
  });
}
