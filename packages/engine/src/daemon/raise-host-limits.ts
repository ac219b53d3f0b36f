import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';

/**
 * Kernel tables that the whole host shares. Each sandbox has a limit for its own entries, or pays for them from its memory; the host's
 * ceiling must be above their sum, or one sandbox could exhaust the table for the other sandboxes and the host.
 * The list with the reasons: docs/internals/kernel-tables.md.
 */
const ENOUGH: Readonly<Record<string, number>> = {
  'fs/file-max': 100_000_000,
  'fs/inotify/max_user_instances': 131_072,
  'fs/inotify/max_user_watches': 67_108_864,
  'kernel/pid_max': 4_194_304,
  'kernel/pty/max': 1_048_576,
  'kernel/threads-max': 1_048_576,
  'net/ipv4/neigh/default/gc_thresh1': 4096,
  'net/ipv4/neigh/default/gc_thresh2': 16_384,
  'net/ipv4/neigh/default/gc_thresh3': 32_768,
  'net/ipv4/tcp_max_orphans': 1_048_576,
};

/** Never lowers a limit. A kernel without a table has no file for it. `folder`: /proc/sys. */
export function raiseHostLimits(logger: Logger, folder = '/proc/sys'): void {
  for (const [path, enough] of Object.entries(ENOUGH)) {
    const setting = path.replaceAll('/', '.');
    try {
      const from = Number(readFileSync(join(folder, path), 'latin1'));
      if (from >= enough) continue;
      // SAFETY: raises a ceiling of the whole host; documented.
      writeFileSync(join(folder, path), `${enough}\n`);
      logger.info({ setting, from, to: enough }, 'raised a limit of this host');
    } catch (error) {
      logger.warn({ setting, error }, 'a limit of this host cannot be raised; sandboxes share it');
    }
  }
}
