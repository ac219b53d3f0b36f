import { extract, type Extract, type Header } from 'tar-stream';
import { drained } from './drained.ts';
import { refused } from './image-failures.ts';

/** The header of an entry, untrusted. `type` is null when tar-stream has no name for it. */
export type TarHeader = Pick<Header, 'name' | 'size' | 'mode' | 'mtime' | 'uid' | 'gid'> & {
  readonly type: Header['type'] | null;
  readonly linkname?: string | null;
  readonly pax?: Readonly<Record<string, string>> | null;
};

export interface TarEntry {
  readonly header: TarHeader;
  /** Read it to the end, or pass it to `skip`, before taking the next entry. */
  readonly body: AsyncIterable<Buffer>;
  readonly skip: () => void;
}

const BLOCK_BYTES = 512;
const UNEXPECTED_END = 'Unexpected end of data';

/** An attribute of a file has at most 64 KiB, and a name 4 KiB. */
const MAX_EXTENDED_HEADER_BYTES = 1024 ** 2;
/** The limit for fields of global headers; archivers set one or two. */
const MAX_GLOBAL_FIELDS = 64;

/** The entries of a tar. A damaged tar is `invalid_image`; a consumer that stops early leaves nothing running. */
export async function* tarEntries(archive: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const reader = extract();
  boundExtendedHeaders(reader);
  const feeding = feed(archive, reader);
  // Awaited below, or reported as the error of the reader.
  feeding.catch(() => {});
  let contentEnd = 0;
  try {
    for await (const entry of reader) {
      // tar-stream decodes extended headers to strings by name and leaves unknown types null; its own types do not declare that.
      const header = entry.header as unknown as TarHeader & { readonly byteOffset: number };
      contentEnd = header.byteOffset + header.size;
      yield { header, body: entry as AsyncIterable<Buffer>, skip: () => void entry.resume() };
    }
    if (contentEnd > (await feeding)) throw new Error(UNEXPECTED_END);
  } catch (error) {
    throw asDamage(error);
  } finally {
    reader.destroy();
    await feeding.catch(() => {});
  }
}

/**
 * Bounds extended headers. tar-stream allows 4 MiB for one header, and copies all global fields for each later header: with half a million
 * of them, each kilobyte of archive makes another copy, which occupies a thread for days.
 */
function boundExtendedHeaders(reader: Extract): void {
  // Not in its types; a test with a hostile archive fails if headers are read elsewhere in a later version.
  const inside = reader as unknown as {
    _paxGlobal: object | null;
    _decodeLongHeader: (header: Buffer) => void;
  };
  const decode = inside._decodeLongHeader.bind(reader);
  inside._decodeLongHeader = (header) => {
    if (header.length > MAX_EXTENDED_HEADER_BYTES) throw new Error('Header exceeds max size');
    decode(header);
    if (Object.keys(inside._paxGlobal ?? {}).length > MAX_GLOBAL_FIELDS) throw new Error('Invalid header');
  };
}

/** Returns the number of bytes in the archive. */
async function feed(archive: AsyncIterable<Buffer>, reader: Extract): Promise<number> {
  let bytes = 0;
  try {
    for await (const chunk of archive) {
      if (reader.destroying) return bytes;
      bytes += chunk.length;
      if (!reader.write(chunk)) await drained(reader);
    }
    // Some builders omit the padding behind the last file.
    reader.write(Buffer.alloc((BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES));
    reader.end(null);
    return bytes;
  } catch (error) {
    reader.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
}

function asDamage(error: unknown): unknown {
  const isDamage =
    error instanceof Error &&
    /tar header|Unexpected end of data|Header exceeds|Invalid header/.test(error.message);
  return isDamage ? refused('a layer or archive is not an intact tar', error) : error;
}
