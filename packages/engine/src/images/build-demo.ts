import { mkdtemp, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { unpackDebian } from './debian-rootfs.ts';
import { DEMO_RECIPES, type DemoImage } from './demo-recipes.ts';
import { finishCode, finishDebian, finishNode, finishPython } from './finish-rootfs.ts';
import type { Image, ImageProgress, Images } from './images.ts';

export interface BuildDemoOptions {
  /** Built in the order of `DEMO_RECIPES`, not of this list. */
  readonly names: readonly DemoImage[];
  /** Rebuilds images that exist. */
  readonly force: boolean;
  /** Holds about 400 MB during the build, on the disk of the images. */
  readonly workFolder: string;
  /** A Node program for Linux that needs no more than glibc and libstdc++. */
  readonly nodeBinary: string;
  /** The folder of the npm package; null builds without npm. */
  readonly npmFolder: string | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly onProgress: (progress: ImageProgress) => void;
  readonly signal: AbortSignal;
}

/** Builds images from Debian packages, for hosts without a registry. Existing images are kept unless forced. */
export async function buildDemoImages(images: Images, options: BuildDemoOptions): Promise<readonly Image[]> {
  const built: Image[] = [];
  const wanted: DemoImage[] = [];
  for (const name of allDemoImages()) {
    if (!options.names.includes(name)) continue;
    const present = options.force ? undefined : await images.get(name);
    if (present === undefined) wanted.push(name);
    else built.push(present);
  }
  for (const group of byPackages(wanted)) built.push(...(await buildGroup(images, group, options)));
  return built;
}

export function allDemoImages(): readonly DemoImage[] {
  // The keys of the table are exactly these names.
  return Object.keys(DEMO_RECIPES) as DemoImage[];
}

/** The images that are built by default. */
export function usualDemoImages(): readonly DemoImage[] {
  return allDemoImages().filter((name) => DEMO_RECIPES[name].isLarge !== true);
}

function byPackages(names: readonly DemoImage[]): readonly (readonly DemoImage[])[] {
  return [...Map.groupBy(names, (name) => DEMO_RECIPES[name].packages.join()).values()];
}

/** Builds images with the same packages, each from the one before it. */
async function buildGroup(
  images: Images,
  names: readonly DemoImage[],
  options: BuildDemoOptions,
): Promise<Image[]> {
  await mkdir(options.workFolder, { recursive: true, mode: 0o700 });
  const workFolder = await mkdtemp(join(options.workFolder, 'build-'));
  const say = (message: string) =>
    options.onProgress({ step: 'building', message: `${names.join(', ')}: ${message}` });
  try {
    const packages = names.flatMap((name) => DEMO_RECIPES[name].packages);
    const root = await unpackDebian([...new Set(packages)], workFolder, { ...options, onMessage: say });
    await finishDebian(root, options.signal);
    const built: Image[] = [];
    for (const name of names) {
      say(`making ${name}`);
      await finish(name, root, options);
      built.push(
        await images.import({ type: 'folder', path: root, config: DEMO_RECIPES[name].config }, name, options),
      );
    }
    return built;
  } finally {
    await rm(workFolder, { recursive: true, force: true });
  }
}

async function finish(name: DemoImage, root: string, options: BuildDemoOptions): Promise<void> {
  if (name === 'svc/code') {
    await finishCode(root, options.signal);
    await finishNode(root, options.nodeBinary, options.npmFolder);
  }
  if (name === 'svc/python') await finishPython(root, options.signal);
  if (name === 'svc/node') await finishNode(root, options.nodeBinary, options.npmFolder);
}
