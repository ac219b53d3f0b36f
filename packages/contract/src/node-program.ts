import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * What a program of ours is started from: what set-up built of its sources, which runs them itself when they have changed since, or
 * the sources where nothing was built. Both are relative to `base`, the URL of the module that asks.
 */
export function programFile(
  base: string,
  places: { readonly built: string; readonly source: string },
): string {
  const built = fileURLToPath(new URL(places.built, base));
  return existsSync(built) ? built : fileURLToPath(new URL(places.source, base));
}
