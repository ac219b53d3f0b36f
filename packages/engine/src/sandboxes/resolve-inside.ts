import { lstat, readlink } from 'node:fs/promises';
import { isAbsolute } from 'node:path';

export interface Resolved {
  /** The parts of the path, free of links and dots. */
  readonly inside: readonly string[];
  readonly isThere: boolean;
}

const MAX_LINKS = 40;

/**
 * Follows a path as the kernel would inside a root: `..` ends at the root, and a link that begins with a slash begins there. Missing parts
 * are taken as plain names. Null for a cycle of links.
 * SAFETY: nothing is held open, so the answer is valid only for folders that cannot change in the meantime.
 */
export async function resolveInside(
  path: string,
  placeOf: (inside: readonly string[]) => string,
): Promise<Resolved | null> {
  let left = path.split('/');
  let inside: string[] = [];
  let links = 0;
  let isThere = true;
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      inside.pop();
      continue;
    }
    const place = placeOf([...inside, name]);
    const found = await lstat(place).catch(() => undefined);
    const target = found?.isSymbolicLink() ? await readlink(place).catch(() => undefined) : undefined;
    isThere &&= found !== undefined;
    if (target === undefined) {
      inside.push(name);
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) return null;
    if (isAbsolute(target)) inside = [];
    left = [...target.split('/'), ...left];
  }
  return { inside, isThere };
}
