import { mkdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { outcomeOf, spawnConfined } from '../images/confined-command.ts';

export interface ForeignImage {
  /** Root's own; the copy is made in it. */
  readonly folder: string;
  /** Where the image is bound. */
  readonly path: string;
  readonly format: 'qcow2' | 'vmdk';
  /** What the caller calls it. */
  readonly host: string;
}

const GIB = 1024 ** 3;
/** Beyond this a copy at each start is the wrong way to use an image. */
const MAX_DISK_BYTES = 64 * GIB;
/** This much stays free on the host's disk, should the copy become as large as it can. */
const HOST_RESERVE_BYTES = GIB;
const MAX_MEMORY_BYTES = GIB;
const MAX_CPU_SECONDS = 120;
const MAX_DESCRIPTION_BYTES = 1024 * 1024;

/**
 * Makes a raw copy of an image in its folder and resolves to its path. Readers of such formats have had bugs that an image can use, so
 * the converter runs without a network, privileges or any file but the image and the copy, and within limits of memory and time.
 */
export async function convertToRaw(image: ForeignImage, signal: AbortSignal): Promise<string> {
  const diskBytes = await inspect(image, signal);
  const copies = join(image.folder, 'copies');
  await mkdir(copies, { mode: 0o700 });
  const { bavail, bsize } = await statfs(copies);
  if (bavail * bsize < diskBytes + HOST_RESERVE_BYTES) {
    const message = `mounts: the host has too little space for a copy of ${image.host} (${diskBytes} bytes); convert it to raw`;
    throw new PlatformError('insufficient_storage', message);
  }
  const options = ['-U', '-f', image.format, '-O', 'raw', INSIDE, '/copies/raw'];
  await run(image, { args: ['convert', ...options], maxFileBytes: diskBytes, copies }, signal);
  return join(copies, 'raw');
}

const INSIDE = '/image';

const Description = Type.Object({
  'virtual-size': Type.Integer({ minimum: 1 }),
  encrypted: Type.Optional(Type.Boolean()),
  'backing-filename': Type.Optional(Type.String()),
  'format-specific': Type.Optional(
    Type.Object({
      data: Type.Object({
        'data-file': Type.Optional(Type.String()),
        extents: Type.Optional(Type.Array(Type.Object({ filename: Type.String() }))),
      }),
    }),
  ),
});

/** The size of the disk in bytes. Refuses an image that needs other files: it would name files of the host. */
async function inspect(image: ForeignImage, signal: AbortSignal): Promise<number> {
  const args = ['info', '-U', '-f', image.format, '--output=json', INSIDE];
  const description: unknown = parse(await run(image, { args, maxFileBytes: 0, copies: null }, signal));
  if (!Value.Check(Description, description)) throw unusable(image, 'it is described in an unknown way');
  const { data } = description['format-specific'] ?? {};
  const isWhole =
    description['backing-filename'] === undefined &&
    data?.['data-file'] === undefined &&
    (data?.extents ?? []).every(({ filename }) => filename === INSIDE);
  if (!isWhole) throw unusable(image, 'it needs other files; make it whole first');
  if (description.encrypted === true) throw unusable(image, 'it is encrypted');
  const bytes = description['virtual-size'];
  if (bytes > MAX_DISK_BYTES) throw unusable(image, `its disk is larger than ${MAX_DISK_BYTES / GIB} GiB`);
  return bytes;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Cut off or garbled: as bad as an unknown one.
    return undefined;
  }
}

interface Run {
  readonly args: readonly string[];
  readonly maxFileBytes: number;
  /** Where it may write, as /copies. */
  readonly copies: string | null;
}

/** Resolves to what it says on its standard output. */
async function run(
  image: ForeignImage,
  { args, maxFileBytes, copies }: Run,
  signal: AbortSignal,
): Promise<string> {
  const limits = [
    `--as=${MAX_MEMORY_BYTES}`,
    `--cpu=${MAX_CPU_SECONDS}`,
    `--fsize=${maxFileBytes}`,
    '--core=0',
  ];
  const child = spawnConfined({
    command: ['prlimit', ...limits, 'qemu-img', ...args],
    programs: [],
    folders: [
      { host: image.path, inside: INSIDE, writable: false },
      ...(copies === null ? [] : [{ host: copies, inside: '/copies', writable: true }]),
    ],
    workdir: '/',
    capabilities: [],
    // The operator's folder may be on any file system, and the image may have any owner.
    ids: 'any',
    network: 'none',
    environment: {},
  });
  let output = '';
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (text: string) => {
    output = (output + text).slice(0, MAX_DESCRIPTION_BYTES);
  });
  const { code, stderr } = await outcomeOf(child, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    throw unusable(image, 'copying it takes longer than a start may', error);
  });
  if (code === 0) return output;
  if (code === NOT_FOUND) {
    const message = 'qemu-img is missing on this host; install it with `apt-get install qemu-utils`';
    throw new PlatformError('unavailable', message);
  }
  throw unusable(image, 'it is damaged, of another format, or needs other files', new Error(stderr));
}

/** What prlimit says when there is no such program. */
const NOT_FOUND = 127;

function unusable({ host, format }: ForeignImage, reason: string, cause?: unknown): PlatformError {
  const message =
    `mounts: ${host} cannot be mounted as ${format}: ${reason}; ` +
    `\`qemu-img convert -O raw ${host} ${host}.raw\` makes an image that can be mounted as raw`;
  return new PlatformError('invalid_sandbox_config', message, { details: { field: 'mounts', host }, cause });
}
