import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import { dirname, basename, join } from 'node:path/posix';
import { pack, type Pack } from 'tar-stream';
import { drained } from '../images/drained.ts';
import { LAYER_TAR_OPTIONS } from '../images/layer-archive.ts';
import { tarEntries, type TarHeader } from '../images/tar-entries.ts';

const OPAQUE = 'SCHILY.xattr.trusted.overlay.opaque';
const USER_XATTR = 'SCHILY.xattr.user.';
const CREATE_OPTIONS = [...LAYER_TAR_OPTIONS, '--xattrs-include=trusted.overlay.opaque', '.'];

/**
 * The tar of a layer in the form that registries use: removed files are marked by `.wh.…` entries instead of the devices and attributes
 * that the disk holds. A restore unpacks it like any layer, with the same checks.
 */
export async function* layerTar(folder: string): AsyncGenerator<Buffer> {
  // SAFETY: no shell; the folder is the engine's own, and tar copies its contents without interpreting them.
  const tar = spawn('tar', ['--directory', folder, ...CREATE_OPTIONS], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8' },
  });
  const ended = once(tar, 'close') as Promise<[number | null]>;
  let said = '';
  tar.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2000)));
  const writer = pack();
  const rewriting = rewrite(tar.stdout as AsyncIterable<Buffer>, writer);
  // A failure of tar destroys the stream that is read here.
  rewriting.catch((error: unknown) =>
    writer.destroy(error instanceof Error ? error : new Error(String(error))),
  );
  let isWhole = false;
  try {
    yield* writer as AsyncIterable<Buffer>;
    isWhole = true;
  } finally {
    // Kills tar when a reader stops early; tar that has written everything has exited already.
    if (!isWhole) {
      writer.destroy();
      tar.kill('SIGKILL');
    }
  }
  await rewriting;
  const [code] = await ended;
  if (code !== 0) throw new Error(`tar ended with ${code}: ${said.trim()}`);
}

async function rewrite(tar: AsyncIterable<Buffer>, writer: Pack): Promise<void> {
  for await (const { header, body, skip } of tarEntries(tar)) {
    if (header.type === 'character-device') {
      writer.entry(marker(join(dirname(header.name), `.wh.${basename(header.name)}`)), '');
      skip();
      continue;
    }
    const sink = writer.entry(asWritten(header));
    if (header.type === 'file') for await (const chunk of body) if (!sink.write(chunk)) await drained(sink);
    if (header.type === 'file') sink.end(null);
    else skip();
    if (header.pax?.[OPAQUE] !== undefined) writer.entry(marker(join(header.name, '.wh..wh..opq')), '');
  }
  writer.finalize();
}

function marker(name: string) {
  return { name, type: 'file', size: 0, mode: 0o600, uid: 0, gid: 0, mtime: new Date(0) } as const;
}

/** tar-stream derives the extended headers for long names and large numbers itself. */
function asWritten({ name, type, size, mode, mtime, uid, gid, linkname, pax }: TarHeader) {
  const kept = Object.entries(pax ?? {}).filter(([key]) => key.startsWith(USER_XATTR));
  return {
    name,
    // Layers hold only files, folders and links, see `LayerRules`.
    type: type ?? 'file',
    size,
    // The type bits keep a mode of 0000 from being taken for "not given".
    mode: (mode & 0o7777) | (type === 'directory' ? 0o40000 : 0o100000),
    mtime,
    uid,
    gid,
    ...(typeof linkname === 'string' ? { linkname } : {}),
    ...(kept.length > 0 ? { pax: Object.fromEntries(kept) } : {}),
  };
}
