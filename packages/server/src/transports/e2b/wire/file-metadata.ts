import type { IncomingHttpHeaders } from 'node:http';
import type { FileMetadata } from '@svc/contract';
import { badField } from '../../../dispatch/rest-dispatch.ts';
import type { FileInfo } from '../../../files/guest-files.ts';

/** Metadata of E2B's clients are the extended attributes of a file below this name. */
const PREFIX = 'e2b.';
const HEADER = 'x-metadata-';
/** With both prefixes as long as a name of the kernel may be. */
const MAX_KEY_BYTES = 246;
const MAX_BYTES = 4096;

export function metadataOf({ metadata }: Pick<FileInfo, 'metadata'>): FileMetadata {
  const own = Object.entries(metadata).filter(([name]) => name.startsWith(PREFIX));
  return Object.fromEntries(own.map(([name, value]) => [name.slice(PREFIX.length), value]));
}

/** What a client sends in headers of an upload; undefined: nothing. @throws PlatformError `invalid_request` */
export function readMetadata(headers: IncomingHttpHeaders): FileMetadata | undefined {
  const given = Object.entries(headers).filter(([name]) => name.startsWith(HEADER));
  if (given.length === 0) return undefined;
  const pairs = given.map(([name, value]) => [name.slice(HEADER.length), String(value)] as const);
  for (const [key, value] of pairs) {
    const field = `X-Metadata-${key}`;
    if (key === '' || key.length > MAX_KEY_BYTES)
      throw badField(field, `must have a name of 1–${MAX_KEY_BYTES} bytes`);
    if (!/^[\x20-\x7e]*$/.test(value)) throw badField(field, 'must be printable ASCII');
  }
  if (pairs.flat().join('').length > MAX_BYTES)
    throw badField('X-Metadata', `must have ${MAX_BYTES} bytes at most, names and values together`);
  return Object.fromEntries(pairs.map(([key, value]) => [`${PREFIX}${key}`, value]));
}
