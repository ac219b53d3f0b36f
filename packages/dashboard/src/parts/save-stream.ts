import { saveFile } from './save-file.ts';

const FOLDER = 'downloads';
/** Size of a write: network chunks are smaller, and each write is a call to another process. */
const PIECE_BYTES = 4 * 1024 * 1024;
/** How long a file is kept after the download began: time for the browser to copy it, at 10 MB a second. */
const [COPY_MS, COPY_BYTES_PER_MS] = [60_000, 10_000];
/** Age from which a leftover file of a closed page is removed. */
const STALE_MS = 24 * 60 * 60_000;

/** Temporary storage of content until it is complete. */
interface Place {
  write(piece: Blob): Promise<void>;
  whole(): Promise<Blob>;
  /** Removes the content after its last use; never rejects. */
  remove(): Promise<void>;
}

/**
 * Saves a stream as a file, once it is complete. Until then the content is in the page's private file system, or where there is
 * none (over plain HTTP) in blobs, which the browser may move to disk.
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
    // SAFETY: received chunks are never in shared memory.
    chunks.push(chunk as Uint8Array<ArrayBuffer>);
    if ((bytes += chunk.length) < PIECE_BYTES) continue;
    yield new Blob(chunks);
    [chunks, bytes] = [[], 0];
  }
  yield new Blob(chunks);
}

/** Null where the browser has no private file system, or refuses access. */
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
        // It is closed already when it was complete.
        await writable.abort().catch(() => undefined);
        await folder.removeEntry(name).catch(() => undefined);
      },
    };
  } catch {
    // Not available over plain HTTP, in some private windows, and in older browsers: expected, so not reported.
    return null;
  }
}

async function removeStale(folder: FileSystemDirectoryHandle): Promise<void> {
  for await (const name of folder.keys())
    if (Date.now() - Number(name.split('-')[0]) > STALE_MS)
      // Another page may be using it.
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
