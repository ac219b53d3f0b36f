import { stat } from 'node:fs/promises';
import { PlatformError } from '@svc/contract/errors';
import type { ImageConfig } from '@svc/contract/orchestrator';
import { recordImage, type AddOptions } from './add-image.ts';
import { hostArchitecture } from './host-architecture.ts';
import type { ImageRecord } from './image-records.ts';
import type { LayerArchive } from './layer-archive.ts';
import { parseConfig } from './oci-documents.ts';

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface RootfsSource {
  readonly type: 'folder' | 'tar';
  readonly path: string;
  readonly config?: Partial<ImageConfig>;
}

/** Makes an image of one layer from a root file system. The same content gives the same id. */
export async function importRootfs(
  source: RootfsSource,
  reference: string,
  options: AddOptions,
): Promise<ImageRecord> {
  await checkSource(source);
  const archive: LayerArchive =
    source.type === 'tar'
      ? { type: 'file', path: source.path, digest: null }
      : { type: 'folder', path: source.path };
  using held = new DisposableStack();
  options.onProgress({ step: 'unpacking', layer: source.type });
  const { diffId } = await options.layers.add(archive, null, options.limits, options.signal, (name) => {
    held.use(options.layers.hold([name]));
  });
  const config = parseConfig(Buffer.from(JSON.stringify(configDocument(diffId, source.config ?? {}))));
  return await recordImage(reference, { config, digest: null, manifestDigest: null }, options);
}

async function checkSource(source: RootfsSource): Promise<void> {
  const found = await stat(source.path).catch(() => null);
  const isRight = source.type === 'folder' ? found?.isDirectory() : found?.isFile();
  if (isRight) return;
  throw new PlatformError(
    'invalid_image',
    `There is no ${source.type === 'folder' ? 'folder' : 'tar file'} at the path to import`,
    {
      details: { path: source.path },
    },
  );
}

function configDocument(diffId: string, config: Partial<ImageConfig>): unknown {
  return {
    architecture: hostArchitecture(),
    os: 'linux',
    config: {
      Entrypoint: config.entrypoint ?? [],
      Cmd: config.cmd ?? [],
      Env: config.env ?? [`PATH=${DEFAULT_PATH}`],
      WorkingDir: config.workdir ?? '',
      User: config.user ?? '',
      Labels: config.labels ?? {},
      StopSignal: config.stopSignal ?? '',
    },
    rootfs: { type: 'layers', diff_ids: [diffId] },
  };
}
