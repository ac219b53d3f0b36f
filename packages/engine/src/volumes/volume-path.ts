import { PlatformError } from '@svc/contract/errors';

const MAX_PATH_BYTES = 4096;
const MAX_NAME_BYTES = 255;
/** Names of temporary files, which callers cannot see or use. */
const TEMPORARY = /^\.svc-tmp-[0-9a-f]{32}$/;

/**
 * The parts of a path relative to a volume; empty for the volume itself.
 * @throws PlatformError `invalid_volume_path`
 */
export function parseVolumePath(path: string): readonly string[] {
  if (path === '') return [];
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw invalid(`is longer than ${MAX_PATH_BYTES} bytes`);
  if (path.includes('\0')) throw invalid('contains a NUL character');
  if (!path.isWellFormed()) throw invalid('is not valid UTF-8');
  if (path.startsWith('/')) throw invalid('is absolute; give it relative to the volume');
  const parts = path.split('/');
  for (const part of parts) checkPart(part);
  return parts;
}

/** As `parseVolumePath`, and refuses the volume itself. */
export function parseEntryPath(path: string): readonly string[] {
  const parts = parseVolumePath(path);
  if (parts.length === 0) throw invalid('is empty; name a file or folder in the volume');
  return parts;
}

export function isTemporaryName(name: string): boolean {
  return TEMPORARY.test(name);
}

function checkPart(part: string): void {
  if (part === '') throw invalid('has an empty part');
  if (part === '.' || part === '..') throw invalid(`contains ${part}; give it without`);
  if (Buffer.byteLength(part) > MAX_NAME_BYTES)
    throw invalid(`has a name longer than ${MAX_NAME_BYTES} bytes`);
  if (isTemporaryName(part)) throw invalid('uses a name that is reserved');
}

function invalid(why: string): PlatformError {
  return new PlatformError('invalid_volume_path', `The path ${why}`);
}
