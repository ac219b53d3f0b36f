import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/**
 * Builds the npm package of an adapter for a framework: JavaScript and types for Node 22. `node scripts/build-adapter.ts NAME FOLDER`;
 * the folder, which must be empty or missing, can be given to `npm install` or `npm pack`.
 */
const ROOT = resolve(import.meta.dirname, '..');
const [name = '', target = ''] = process.argv.slice(2);
const source = join(ROOT, 'adapters', name);
const folder = resolve(target);

mkdirSync(folder, { recursive: true });
if (name === '' || target === '' || globSync('*', { cwd: folder }).length > 0)
  throw new Error(
    'give the name of an adapter and an empty folder: node scripts/build-adapter.ts NAME FOLDER',
  );
compile();
for (const path of ['README.md', '../../LICENSE'])
  cpSync(join(source, path), join(folder, path.replace(/.*\//, '')));
const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as object;
const { repository } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { repository: object };
const whole = { ...manifest, repository: { ...repository, directory: `adapters/${name}` } };
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(whole, null, 2)}\n`);
console.log(`built the adapter ${name} in ${folder}`);

function compile(): void {
  // Placed beside the sources, where the compiler finds the SDK.
  const settings = mkdtempSync(join(source, '.build-'));
  try {
    const options = {
      extends: '../../tsconfig.json',
      compilerOptions: {
        noEmit: false,
        // `npm run check` checks the types. The frameworks may be absent here.
        noCheck: true,
        declaration: true,
        rewriteRelativeImportExtensions: true,
        target: 'es2024',
        rootDir: '../src',
        outDir: join(folder, 'dist'),
      },
      include: [],
      files: [join(source, 'src/index.ts')],
    };
    writeFileSync(join(settings, 'tsconfig.json'), JSON.stringify(options));
    const compiler = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', settings];
    execFileSync(process.execPath, compiler, { stdio: 'inherit' });
  } finally {
    rmSync(settings, { recursive: true, force: true });
  }
}
