import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'vite';

/**
 * Bundles the unprivileged program that reads archives (`engine/src/images/archive-program.ts`) into one file: it starts for every
 * layer and cannot see the checkout from its namespace. `node scripts/build-archive-program.ts`
 */
const ENGINE = resolve(import.meta.dirname, '../packages/engine');
const FOLDER = join(ENGINE, 'build');
const NAME = 'archive-program.js';

const made = `${FOLDER}.${process.pid}`;
try {
  await build({
    configFile: false,
    root: ENGINE,
    logLevel: 'error',
    // All modules are bundled, also those of packages.
    ssr: { noExternal: true },
    build: {
      ssr: join(ENGINE, 'src/images/archive-program.ts'),
      outDir: made,
      target: 'node24',
      rolldownOptions: { output: { entryFileNames: NAME, format: 'esm' } },
    },
  });
  mkdirSync(FOLDER, { recursive: true });
  // The program runs as a user without rights on this host, so the file is readable for all.
  chmodSync(join(made, NAME), 0o755);
  // Replaced atomically, because an engine may be starting it.
  renameSync(join(made, NAME), join(FOLDER, NAME));
} finally {
  rmSync(made, { recursive: true, force: true });
}
console.log(`built ${NAME}, ${readFileSync(join(FOLDER, NAME)).length} bytes`);
