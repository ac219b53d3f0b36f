import { isAbsolute, join, relative } from 'node:path';
import type { Source } from './stage-source.ts';

/**
 * What of the operator's folders a caller reaches: all of them, or the folder of its own in each. The kernel resolves paths inside
 * what is returned here, so that no link leads from one caller's folder into another's.
 */
export function reachableRoots(roots: readonly string[], hostFolder: string | null): readonly string[] {
  // SAFETY: one name without a separator; `readCreate` has checked it.
  return hostFolder === null ? roots : roots.map((root) => join(root, hostFolder));
}

/** Where an absolute path lies; undefined when it is in none of the roots. */
export function placeIn(roots: readonly string[], host: string): Source | undefined {
  if (!isAbsolute(host)) return undefined;
  const root = roots.find((allowed) => host === allowed || host.startsWith(`${allowed}/`));
  return root === undefined ? undefined : { root, path: relative(root, host) || '.', isVolume: false };
}
