import { PlatformError } from '../errors.ts';

const MAX_PATH_BYTES = 4096;
const MAX_NAME_BYTES = 255;
/** URL-safe, padded or not. */
const BASE64 = /^[A-Za-z0-9_-]*={0,2}$/;

// Without `ignoreBOM` a leading byte order mark would vanish from the name.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Encodes a path in a volume for a header, which holds ASCII only. The volume itself is the empty text. */
export function encodeVolumePath(path: string): string {
  const binary = Array.from(new TextEncoder().encode(path), (byte) => String.fromCodePoint(byte)).join('');
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @throws PlatformError `invalid_volume_path` */
export function decodeVolumePath(header: string, field: string): string {
  if (!BASE64.test(header)) throw invalid(field, 'is not URL-safe base64');
  return checkVolumePath(decodeText(header.replaceAll('=', ''), field), field);
}

/**
 * Checks a path relative to a volume: its parts are names; empty for the volume itself. `field` names the field in the request.
 * @returns the path
 * @throws PlatformError `invalid_volume_path`
 */
export function checkVolumePath(path: string, field: string): string {
  if (path === '') return path;
  if (!path.isWellFormed()) throw invalid(field, 'is not valid UTF-8');
  if (byteLength(path) > MAX_PATH_BYTES) throw invalid(field, `is longer than ${MAX_PATH_BYTES} bytes`);
  if (path.includes('\0')) throw invalid(field, 'contains a NUL character');
  if (path.startsWith('/')) throw invalid(field, 'is absolute; give it relative to the volume');
  for (const part of path.split('/')) {
    if (part === '') throw invalid(field, 'has an empty part');
    if (part === '.' || part === '..') throw invalid(field, `contains ${part}; give it without`);
    if (byteLength(part) > MAX_NAME_BYTES) {
      throw invalid(field, `has a name longer than ${MAX_NAME_BYTES} bytes`);
    }
  }
  return path;
}

/** Like `checkVolumePath`, for a file or folder in the volume, not the volume itself. */
export function checkEntryPath(path: string, field: string): string {
  if (path === '') throw invalid(field, 'is empty; name a file or folder in the volume');
  return checkVolumePath(path, field);
}

function decodeText(base64: string, field: string): string {
  try {
    const binary = atob(base64.replaceAll('-', '+').replaceAll('_', '/'));
    return decoder.decode(Uint8Array.from(binary, (character) => character.codePointAt(0) ?? 0));
  } catch (error) {
    const reason = error instanceof TypeError ? 'is not valid UTF-8' : 'is not URL-safe base64';
    throw invalid(field, reason, error);
  }
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

function invalid(field: string, reason: string, cause?: unknown): PlatformError {
  return new PlatformError('invalid_volume_path', `${field} ${reason}`, {
    details: { field, reason },
    cause,
  });
}
