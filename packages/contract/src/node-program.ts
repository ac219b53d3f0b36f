import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * The entry file of one of our programs: the bundle that set-up built, which runs the sources itself when they have changed since,
 * or the sources where there is no bundle. Both are relative to `base`, the URL of the calling module.
 */
export function programFile(
  base: string,
  places: { readonly built: string; readonly source: string },
): string {
  const built = fileURLToPath(new URL(places.built, base));
  return existsSync(built) ? built : fileURLToPath(new URL(places.source, base));
}
