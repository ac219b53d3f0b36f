import { extract, type Extract, type Header } from 'tar-stream';
import { drained } from './drained.ts';
import { refused } from './image-failures.ts';

/** What the header of an entry says, hostile or not. `type` is null when tar-stream has no name for it. */
export type TarHeader = Pick<Header, 'name' | 'size' | 'mode' | 'mtime' | 'uid' | 'gid'> & {
  readonly type: Header['type'] | null;
  readonly linkname?: string | null;
  readonly pax?: Readonly<Record<string, string>> | null;
};

export interface TarEntry {
  readonly header: TarHeader;
  /** To be read to its end, or given to `skip`, before the next entry comes. */
  readonly body: AsyncIterable<Buffer>;
  readonly skip: () => void;
}

const BLOCK_BYTES = 512;
const UNEXPECTED_END = 'Unexpected end of data';

/** Attributes of a file have 64 KiB each, and a name 4 KiB. */
const MAX_EXTENDED_HEADER_BYTES = 1024 ** 2;
/** Of those that hold for all entries; what writes archives sets one or two. */
const MAX_GLOBAL_FIELDS = 64;

/** The entries of a tar. A damaged one is `invalid_image`; whoever stops early leaves nothing running. */
export async function* tarEntries(archive: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const reader = extract();
  boundExtendedHeaders(reader);
  const feeding = feed(archive, reader);
  // Seen by the await below, or as the error of the reader.
  feeding.catch(() => {});
  let contentEnd = 0;
  try {
    for await (const entry of reader) {
      // tar-stream decodes extended headers to strings by name and leaves unknown types null; its own types do not say so.
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
 * tar-stream takes 4 MiB for one header, and copies every field that holds for all entries for each header that follows: half a million
 * fields in front and a kilobyte for each copy of them keep a thread busy for days.
 */
function boundExtendedHeaders(reader: Extract): void {
  // Not in its types; a hostile archive in the tests fails when this is no longer where headers are read.
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
    // Some builders leave out the padding behind the last file.
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
