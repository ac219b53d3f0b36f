import type { Stats } from 'node:fs';
import { UsageError } from '../usage-error.ts';

/** Neither a file nor a folder, such as a pipe: reading it may never end. */
export function isSpecial(stats: Stats): boolean {
  return !stats.isFile() && !stats.isDirectory();
}

export function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'a named pipe';
  return stats.isSocket() ? 'a socket' : 'a device';
}

/** @throws UsageError */
export function requireFileOrFolder(path: string, stats: Stats): void {
  if (!isSpecial(stats)) return;
  throw new UsageError(
    `${path} is ${kindOf(stats)}, and only files and folders are copied\n  try: cat ${path} | the same command with - instead of ${path}`,
  );
}
