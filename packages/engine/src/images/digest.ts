import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { PlatformError } from '@svc/contract/errors';

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Only sha256: registries serve it, and with one algorithm each content has one name. */
export function isDigest(value: string): boolean {
  return DIGEST.test(value);
}

export function digestOf(bytes: string | Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** The 64 hex digits: safe as a file name. */
export function hexOf(digest: string): string {
  if (!isDigest(digest)) throw new Error('not a sha256 digest');
  return digest.slice('sha256:'.length);
}

export async function digestOfFile(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024, signal })) {
    hash.update(chunk as Buffer);
  }
  return `sha256:${hash.digest('hex')}`;
}

/** Throws `invalid_image` unless `actual` is what was announced. */
export function checkDigest(what: string, expected: string, actual: string): void {
  if (expected === actual) return;
  throw new PlatformError(
    'invalid_image',
    `The ${what} does not match its digest: ${expected} was announced, ${actual} arrived; nothing was kept`,
    { details: { expected, actual } },
  );
}
