import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'vite';

/**
 * Makes one file of the program that reads archives without rights (`engine/src/images/archive-program.ts`): where it runs there is no
 * checkout to load the rest from, and it starts for every layer. `node scripts/build-archive-program.ts`
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
    // All of it is in the file, whatever it comes from.
    ssr: { noExternal: true },
    build: {
      ssr: join(ENGINE, 'src/images/archive-program.ts'),
      outDir: made,
      target: 'node24',
      rolldownOptions: { output: { entryFileNames: NAME, format: 'esm' } },
    },
  });
  mkdirSync(FOLDER, { recursive: true });
  // Whoever reads archives is nobody on this host.
  chmodSync(join(made, NAME), 0o755);
  // In the place of the old one, whole, while an engine may be starting it.
  renameSync(join(made, NAME), join(FOLDER, NAME));
} finally {
  rmSync(made, { recursive: true, force: true });
}
console.log(`built ${NAME}, ${readFileSync(join(FOLDER, NAME)).length} bytes`);
