import { gzipSync, zstdCompressSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';
import { digestOf } from '../images/digest.ts';
import { hostArchitecture } from '../images/host-architecture.ts';

/** An entry of an archive; `body` makes it a file. */
export type TestEntry = Partial<Omit<Header, 'name'>> & {
  readonly name: string;
  readonly body?: string | Buffer;
};

export interface TestLayer {
  readonly blob: Buffer;
  readonly digest: string;
  readonly diffId: string;
  readonly mediaType: string;
}

export interface TestImage {
  readonly manifest: Buffer;
  readonly digest: string;
  readonly config: Buffer;
  readonly layers: readonly TestLayer[];
}

const COMPRESS = {
  none: (tar: Buffer) => tar,
  gzip: (tar: Buffer) => gzipSync(tar),
  zstd: (tar: Buffer) => zstdCompressSync(tar),
};

/** An archive with exactly these entries, valid or not. */
export async function tarOf(entries: readonly TestEntry[]): Promise<Buffer> {
  const writer = pack();
  for (const { body, ...header } of entries) {
    const withDefaults = { mtime: new Date(0), uid: 0, gid: 0, mode: 0o644, ...header };
    // tar-stream treats a mode of 0 as missing; it masks the type bits away.
    withDefaults.mode |= 0o100000;
    if (body === undefined) writer.entry({ type: 'directory', ...withDefaults });
    else writer.entry({ type: 'file', ...withDefaults }, body);
  }
  writer.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of writer as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export async function layerOf(
  entries: readonly TestEntry[],
  compression: keyof typeof COMPRESS = 'gzip',
): Promise<TestLayer> {
  return layerFromTar(await tarOf(entries), compression);
}

export function layerFromTar(tar: Buffer, compression: keyof typeof COMPRESS = 'gzip'): TestLayer {
  const blob = COMPRESS[compression](tar);
  const suffix = compression === 'none' ? '' : `+${compression}`;
  return {
    blob,
    digest: digestOf(blob),
    diffId: digestOf(tar),
    mediaType: `application/vnd.oci.image.layer.v1.tar${suffix}`,
  };
}

export function imageOf(
  layers: readonly TestLayer[],
  config: Readonly<Record<string, unknown>> = {},
): TestImage {
  const document = Buffer.from(
    JSON.stringify({
      architecture: hostArchitecture(),
      os: 'linux',
      config: { Env: ['PATH=/bin'], Cmd: ['/bin/sh'] },
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      ...config,
    }),
  );
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: descriptor('application/vnd.oci.image.config.v1+json', document),
      layers: layers.map(({ blob, mediaType }) => descriptor(mediaType, blob)),
    }),
  );
  return { manifest, digest: digestOf(manifest), config: document, layers };
}

export function descriptor(
  mediaType: string,
  bytes: Buffer,
): { mediaType: string; digest: string; size: number } {
  return { mediaType, digest: digestOf(bytes), size: bytes.length };
}
