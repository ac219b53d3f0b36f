import { extract, type Extract, type Header } from 'tar-stream';
import { drained } from './drained.ts';
import { refused } from './oci-documents.ts';

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

/** The entries of a tar. A damaged one is `invalid_image`; whoever stops early leaves nothing running. */
export async function* tarEntries(archive: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const reader = extract();
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
