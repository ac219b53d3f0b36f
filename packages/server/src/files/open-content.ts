import { PlatformError, type ChannelFiles } from '@svc/contract';
import { boundedBy } from '../processes/explain-failure.ts';
import { readRange } from './byte-range.ts';

/** Of one read: two such windows of each reader are in memory at once. */
const WINDOW_BYTES = 512 * 1024;

export interface FileContent {
  readonly start: number;
  /** The byte behind the last one; null: unknown until the file ends, as of files in /proc. */
  readonly end: number | null;
  /** A range was asked for. */
  readonly isPartial: boolean;
  /** Of the whole file; null: unknown. */
  readonly totalBytes: number | null;
  readonly content: AsyncIterable<Uint8Array>;
}

export interface ContentRequest {
  readonly path: string;
  /** The `Range` header. */
  readonly range: string | undefined;
  readonly explain: (error: unknown) => Promise<unknown>;
}

/** The handle is closed when the content was read or is let go, and when the signal aborts. */
export async function openContent(
  files: ChannelFiles,
  { path, range, explain }: ContentRequest,
  signal: AbortSignal,
): Promise<FileContent> {
  const handle = await files.open(path, { read: true }, boundedBy(signal));
  const close = closeOnce(files, handle);
  try {
    const { size } = await files.fstat(handle, boundedBy(signal));
    if (size === 0) return await openUnsized(files, handle, close, signal);
    const part = readRange(range, size);
    const { start, end } = part ?? { start: 0, end: size };
    signal.addEventListener('abort', close, { once: true });
    const content = contentOf(files, handle, { start, end, path, close, explain }, signal);
    return { start, end, isPartial: part !== undefined, totalBytes: size, content };
  } catch (error) {
    close();
    throw error;
  }
}

/** Files of /proc and the like say that they are empty, so the beginning is read first. */
async function openUnsized(
  files: ChannelFiles,
  handle: number,
  close: () => void,
  signal: AbortSignal,
): Promise<FileContent> {
  const first = await files.read(handle, 0, WINDOW_BYTES, signal);
  const length = first.reduce((sum, chunk) => sum + chunk.length, 0);
  const isWhole = length < WINDOW_BYTES;
  if (isWhole) close();
  else signal.addEventListener('abort', close, { once: true });
  const end = isWhole ? length : null;
  async function* content(): AsyncGenerator<Uint8Array, void> {
    try {
      yield* first;
      if (!isWhole) yield* files.readHandle(handle, signal, { start: length, windowBytes: WINDOW_BYTES });
    } finally {
      close();
    }
  }
  return { start: 0, end, isPartial: false, totalBytes: end, content: content() };
}

async function* contentOf(
  files: ChannelFiles,
  handle: number,
  part: {
    readonly start: number;
    readonly end: number;
    readonly path: string;
    readonly close: () => void;
    readonly explain: ContentRequest['explain'];
  },
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const { start, end, path, close, explain } = part;
  let read = start;
  try {
    for await (const chunk of files.readHandle(handle, signal, { start, end, windowBytes: WINDOW_BYTES })) {
      read += chunk.length;
      yield chunk;
    }
  } catch (error) {
    throw await explain(error);
  } finally {
    close();
  }
  if (read >= end) return;
  throw new PlatformError('unavailable', `${path} became shorter while it was read; read it again`);
}

function closeOnce(files: ChannelFiles, handle: number): () => void {
  let isOpen = true;
  return () => {
    if (isOpen) files.release(handle);
    isOpen = false;
  };
}
