const PREFIX = '.svc-partial-';
const RANDOM_BYTES = 8;

/** A name beside a file for what is to replace it. */
export function partialPathOf(path: string): string {
  return `${path.slice(0, path.lastIndexOf('/') + 1)}${PREFIX}${randomName()}`;
}

/** Whether it is what will replace a file, once it is complete. */
export function isPartialPath(path: string): boolean {
  return path.slice(path.lastIndexOf('/') + 1).startsWith(PREFIX);
}

/** Browsers offer `randomUUID` only to pages that were loaded over TLS. */
function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(RANDOM_BYTES));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
