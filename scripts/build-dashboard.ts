import { createHash } from 'node:crypto';
import { globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';

/**
 * Builds the dashboard into `packages/dashboard/build`, which `svc server` serves: hashed files, each with its compressed form
 * beside it. Does nothing when the sources have not changed. `node scripts/build-dashboard.ts [--force]`
 */
const ROOT = resolve(import.meta.dirname, '..');
const DASHBOARD = join(ROOT, 'packages/dashboard');
const FOLDER = join(DASHBOARD, 'build');
const STAMP = join(FOLDER, '.made-of');
const SOURCES = [
  'package-lock.json',
  'scripts/build-dashboard.ts',
  'packages/dashboard/{index.html,package.json,tsconfig.json}',
  'packages/{dashboard,sdk,contract}/src/**/*',
];

const wanted = digestOfSources();
if (!process.argv.includes('--force') && wanted === readStamp())
  console.log('the dashboard is in step with its sources');
else await make();

async function make(): Promise<void> {
  // Built beside the old one and then renamed: a server that starts meanwhile finds one of the two, complete.
  const made = `${FOLDER}.${process.pid}`;
  try {
    await buildInto(made);
    for (const path of globSync('**/*.{html,js,css,svg}', { cwd: made })) compress(join(made, path));
    writeFileSync(join(made, '.made-of'), wanted);
    rmSync(FOLDER, { recursive: true, force: true });
    renameSync(made, FOLDER);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  console.log(`built the dashboard in ${FOLDER}`);
}

async function buildInto(outDir: string): Promise<void> {
  await build({
    configFile: false,
    root: DASHBOARD,
    logLevel: 'error',
    build: {
      outDir,
      target: 'es2024',
      // Assets are not inlined, because the content security policy of the page would refuse them.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  });
}

function compress(file: string): void {
  const bytes = readFileSync(file);
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
}

function digestOfSources(): string {
  const hash = createHash('sha256');
  const files = globSync(SOURCES, { cwd: ROOT, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.includes('.test.'))
    .map((entry) => join(entry.parentPath, entry.name));
  for (const file of files.toSorted()) hash.update(`${file.slice(ROOT.length)}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

function readStamp(): string | undefined {
  try {
    return readFileSync(STAMP, 'utf8');
  } catch {
    // There is no earlier build.
    return undefined;
  }
}
