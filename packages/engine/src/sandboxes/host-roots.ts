import { isAbsolute, join, relative } from 'node:path';
import type { Source } from './stage-source.ts';

/**
 * The part of the operator's folders that a caller can reach: all of them, or the caller's own folder in each. The kernel resolves paths
 * inside the returned folders, so that no link leads from one caller's folder into another's.
 */
export function reachableRoots(roots: readonly string[], hostFolder: string | null): readonly string[] {
  // SAFETY: one name without a separator; `readCreate` has checked it.
  return hostFolder === null ? roots : roots.map((root) => join(root, hostFolder));
}

/** The root that contains an absolute path, and the path inside it; undefined when no root does. */
export function placeIn(roots: readonly string[], host: string): Source | undefined {
  if (!isAbsolute(host)) return undefined;
  const root = roots.find((allowed) => host === allowed || host.startsWith(`${allowed}/`));
  return root === undefined ? undefined : { root, path: relative(root, host) || '.', isVolume: false };
}
