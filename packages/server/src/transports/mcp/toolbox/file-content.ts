import { isUtf8 } from 'node:buffer';
import { posix } from 'node:path';

/** Bytes that are read to detect the type of a file. */
const SNIFFED_BYTES = 8192;
const MAX_UTF8_LENGTH = 4;

/** Magic numbers, as Latin-1. */
const MAGIC: readonly (readonly [mimeType: string, isBegun: (start: string) => boolean])[] = [
  ['image/png', (start) => start.startsWith('\u0089PNG\r\n\u001a\n')],
  ['image/jpeg', (start) => start.startsWith('\u00ff\u00d8\u00ff')],
  ['image/gif', (start) => /^GIF8[79]a/.test(start)],
  ['image/webp', (start) => start.startsWith('RIFF') && start.startsWith('WEBP', 8)],
  ['application/pdf', (start) => start.startsWith('%PDF-')],
];

const OF_EXTENSION: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.csv': 'text/csv',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.py': 'text/x-python',
  '.svg': 'image/svg+xml',
  '.xml': 'application/xml',
  '.yaml': 'application/yaml',
};

export interface ContentKind {
  readonly mimeType: string;
  readonly isText: boolean;
  /** Whether models accept this type of image. */
  readonly isImage: boolean;
}

/** Detects the type of a file by its first bytes; the name is used for text files only. */
export function kindOf(path: string, beginning: Uint8Array): ContentKind {
  const bytes = Buffer.from(beginning.buffer, beginning.byteOffset, beginning.byteLength);
  const start = bytes.subarray(0, SNIFFED_BYTES);
  const latin = start.subarray(0, 16).toString('latin1');
  const known = MAGIC.find(([, isBegun]) => isBegun(latin))?.[0];
  if (known !== undefined) return { mimeType: known, isText: false, isImage: known.startsWith('image/') };
  const isText = !start.includes(0) && isUtf8(withoutPartialEnd(start));
  if (!isText) return { mimeType: 'application/octet-stream', isText, isImage: false };
  const mimeType = OF_EXTENSION[posix.extname(path).toLowerCase()] ?? 'text/plain';
  return { mimeType, isText, isImage: false };
}

/** Removes an incomplete character at the end. */
export function withoutPartialEnd(bytes: Buffer): Buffer {
  for (let back = 1; back < MAX_UTF8_LENGTH && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

/** Removes an incomplete character at the start. */
export function withoutPartialStart(bytes: Buffer): Buffer {
  let count = 0;
  while (count < MAX_UTF8_LENGTH - 1 && ((bytes[count] ?? 0) & 0b1100_0000) === 0b1000_0000) count += 1;
  return bytes.subarray(count);
}
