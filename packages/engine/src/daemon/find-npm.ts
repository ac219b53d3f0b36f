import { realpath, stat } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';

/** Where set-up installs npm on a host without one. */
const OWN_FOLDER = '/opt/svc/bin';

/** The folder of an npm that can be copied elsewhere; null when neither the PATH nor set-up has one. */
export async function findNpm(path: string, ownFolder = OWN_FOLDER): Promise<string | null> {
  for (const folder of [...path.split(delimiter), ownFolder]) {
    const program = await realpath(join(folder, 'npm')).catch(() => undefined);
    if (program === undefined) continue;
    const home = dirname(dirname(program));
    if (await isWhole(home)) return home;
  }
  return null;
}

/** Debian's npm has most of its modules in other packages: a copy of its folder would not start. */
async function isWhole(home: string): Promise<boolean> {
  const parts = ['bin/npm-cli.js', 'node_modules/semver'].map((part) => stat(join(home, part)));
  return await Promise.all(parts).then(
    () => true,
    () => false,
  );
}
