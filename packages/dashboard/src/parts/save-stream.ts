import { saveFile } from './save-file.ts';

const FOLDER = 'downloads';
/** Written at a time: what comes over the network comes in smaller pieces, and each write asks another process. */
const PIECE_BYTES = 4 * 1024 * 1024;
/** By then the browser has copied what it was handed, at 10 MB a second. */
const [COPY_MS, COPY_BYTES_PER_MS] = [60_000, 10_000];
/** What was left by a page that was closed meanwhile. */
const STALE_MS = 24 * 60 * 60_000;

/** Where content is gathered until it is whole. */
interface Place {
  write(piece: Blob): Promise<void>;
  whole(): Promise<Blob>;
  /** Only when nobody needs it any more; never rejects. */
  remove(): Promise<void>;
}

/**
 * Hands the browser a file to keep, once all of it has come. Until then it lies on the disk, in the page's private part of it, or where
 * a page has none (it came over plain HTTP) in blobs, which the browser may move to its disk.
 */
export async function saveStream(
  name: string,
  content: AsyncIterable<Uint8Array>,
  onReceived: (bytes: number) => void,
): Promise<void> {
  const place = (await onDisk()) ?? inBlobs();
  try {
    let received = 0;
    for await (const piece of inPieces(content)) {
      await place.write(piece);
      onReceived((received += piece.size));
    }
    const file = await place.whole();
    saveFile(name, [file]);
    setTimeout(() => void place.remove(), COPY_MS + file.size / COPY_BYTES_PER_MS);
  } catch (error) {
    await place.remove();
    throw error;
  }
}

async function* inPieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Blob, void> {
  let chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    // SAFETY: what is received is never in memory that others share.
    chunks.push(chunk as Uint8Array<ArrayBuffer>);
    if ((bytes += chunk.length) < PIECE_BYTES) continue;
    yield new Blob(chunks);
    [chunks, bytes] = [[], 0];
  }
  yield new Blob(chunks);
}

/** Null where the browser has no such thing, or does not want to now. */
async function onDisk(): Promise<Place | null> {
  try {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle(FOLDER, { create: true });
    await removeStale(folder);
    const name = `${Date.now()}-${Math.random()}`;
    const handle = await folder.getFileHandle(name, { create: true });
    const writable = await handle.createWritable();
    return {
      write: (piece) => writable.write(piece),
      whole: async () => {
        await writable.close();
        return await handle.getFile();
      },
      remove: async () => {
        // It is closed already when it was whole.
        await writable.abort().catch(() => undefined);
        await folder.removeEntry(name).catch(() => undefined);
      },
    };
  } catch {
    // Not over plain HTTP, not in some private windows, not in older browsers: none of it is worth a word.
    return null;
  }
}

async function removeStale(folder: FileSystemDirectoryHandle): Promise<void> {
  for await (const name of folder.keys())
    if (Date.now() - Number(name.split('-')[0]) > STALE_MS)
      // Another page may be at it.
      await folder.removeEntry(name).catch(() => undefined);
}

function inBlobs(): Place {
  const pieces: Blob[] = [];
  return {
    write: async (piece) => void pieces.push(piece),
    whole: async () => new Blob(pieces),
    remove: async () => void pieces.splice(0),
  };
}
