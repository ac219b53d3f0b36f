import { pack, type Pack } from 'tar-stream';
import type { ArchiveReading } from './archive-reading.ts';
import { drained } from './drained.ts';
import type { ImageLimits } from './image-limits.ts';
import { LayerRules } from './layer-rules.ts';
import { tarEntries, type TarEntry } from './tar-entries.ts';

const WRITE_BYTES = 256 * 1024;

/** Rewrites the archive of a layer with the entries that `LayerRules` allows, in the form that may be written to disk. */
export async function rewriteLayer(
  archive: AsyncIterable<Buffer>,
  limits: ImageLimits,
  write: (chunk: Buffer) => void,
): Promise<ArchiveReading['rewrite']> {
  const rules = new LayerRules(limits);
  const writer = pack();
  await Promise.all([rewrite(tarEntries(archive), writer, rules), drain(writer, write)]);
  return { counts: rules.counts, opaque: [...rules.opaqueFolders()] };
}

async function rewrite(entries: AsyncIterable<TarEntry>, writer: Pack, rules: LayerRules): Promise<void> {
  for await (const { header, body, skip } of entries) {
    const kept = rules.decide(header);
    if (kept === null || kept.type !== 'file') {
      if (kept !== null) writer.entry(kept);
      skip();
      continue;
    }
    const sink = writer.entry(kept);
    for await (const chunk of body) {
      if (!sink.write(chunk)) await drained(sink);
    }
    sink.end(null);
  }
  for (const kept of rules.finish()) writer.entry(kept);
  writer.finalize();
}

/** Combines the many small chunks of an archive into few writes. */
export async function drain(writer: Pack, write: (chunk: Buffer) => void): Promise<void> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of writer as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes < WRITE_BYTES) continue;
    write(Buffer.concat(pieces));
    pieces = [];
    bytes = 0;
  }
  write(Buffer.concat(pieces));
}
