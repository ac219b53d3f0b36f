import { readFileSync, writeFileSync } from 'node:fs';
import type { Logger } from 'pino';

/**
 * What sandboxes use of these counts against root of the host too. Each sandbox has a limit of its own (svc-host sets it with the
 * user namespace); the host's must be beyond what all of them reach together, or one sandbox could leave nothing to the others and
 * to the host. What is used costs kernel memory, which each sandbox pays from its own limit.
 */
const ENOUGH: Readonly<Record<string, number>> = {
  max_user_instances: 131_072,
  max_user_watches: 67_108_864,
};

/** Never lowers anything. `folder`: /proc/sys/fs/inotify. */
export function raiseHostLimits(logger: Logger, folder = '/proc/sys/fs/inotify'): void {
  for (const [name, enough] of Object.entries(ENOUGH)) {
    const file = `${folder}/${name}`;
    try {
      const from = Number(readFileSync(file, 'latin1'));
      if (from >= enough) continue;
      // SAFETY: a ceiling of the whole host is raised; documented.
      writeFileSync(file, `${enough}\n`);
      logger.info({ setting: `fs.inotify.${name}`, from, to: enough }, 'raised a limit of this host');
    } catch (error) {
      logger.warn(
        { setting: `fs.inotify.${name}`, error },
        'a limit of this host cannot be raised; sandboxes share it',
      );
    }
  }
}
