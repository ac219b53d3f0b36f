import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, resolve } from 'node:path';
import { renderRestTypes } from './sdk-types.ts';

/**
 * Builds the npm package of the SDK: JavaScript and types for Node 22 and for browsers, with the part of the contract that clients
 * need. `node scripts/build-sdk.ts [FOLDER]`; the folder can be given to `npm install` or `npm pack`.
 */
const ROOT = resolve(import.meta.dirname, '..');
const folder = resolve(process.argv[2] ?? join(ROOT, 'packages/sdk/build'));

const sdk = readManifest('sdk');
const contract = readManifest('contract');
const { repository } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly repository: object;
};
const ENTRIES = ['sdk/src/index.ts', 'sdk/src/node.ts', 'sdk/src/platform/browser-platform.ts'];

compile();
writeFileSync(join(folder, 'contract/rest/index.d.ts'), renderRestTypes());
for (const path of globSync(['**/*.js', '**/*.d.ts'], { cwd: folder })) pointToContract(path);
dropUnreached();
cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
cpSync(join(ROOT, 'packages/sdk/README.md'), join(folder, 'README.md'));
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(packageManifest(), null, 2)}\n`);
console.log(`built ${sdk.name} ${sdk.version} in ${folder}`);

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly exports: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

function readManifest(name: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'packages', name, 'package.json'), 'utf8')) as Manifest;
}

/** The SDK and the used files of the contract, side by side. */
function compile(): void {
  // SAFETY: replaces only the folder of an earlier build.
  if (globSync('*', { cwd: folder }).length > 0) {
    readFileSync(join(folder, 'sdk/index.js'));
    rmSync(folder, { recursive: true });
  }
  mkdirSync(folder, { recursive: true });
  // Placed beside the sources, where the compiler finds the types of Node.
  const settings = mkdtempSync(join(ROOT, 'packages/sdk/.build-'));
  try {
    const emitted = join(settings, 'out');
    const options = {
      extends: '../../../tsconfig.json',
      compilerOptions: {
        noEmit: false,
        // `npm run check` checks the types.
        noCheck: true,
        declaration: true,
        rewriteRelativeImportExtensions: true,
        // Node 22 and today's browsers: no `using` yet.
        target: 'es2024',
        rootDir: '../..',
        outDir: emitted,
      },
      include: [],
      files: [...ENTRIES, ...entriesInUse()].map((path) => join(ROOT, 'packages', path)),
    };
    writeFileSync(join(settings, 'tsconfig.json'), JSON.stringify(options));
    // On one thread: with several, TypeScript 7.0 sometimes drops a file that it finds both by path and as a package.
    const compiler = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', settings, '--singleThreaded'];
    execFileSync(process.execPath, compiler, { stdio: 'inherit' });
    for (const name of ['sdk', 'contract'])
      cpSync(join(emitted, name, 'src'), join(folder, name), { recursive: true });
  } finally {
    rmSync(settings, { recursive: true, force: true });
  }
}

function entriesInUse(): string[] {
  const entries = new Set<string>();
  for (const path of globSync('src/**/*.ts', {
    cwd: join(ROOT, 'packages/sdk'),
    exclude: ['**/*.test.ts'],
  })) {
    const text = readFileSync(join(ROOT, 'packages/sdk', path), 'utf8');
    for (const [, entry = ''] of text.matchAll(/from '@svc\/contract([^']*)'/g)) entries.add(entryOf(entry));
  }
  return [...entries].map((path) => `contract/${path}`);
}

/** `/errors` → `src/errors.ts` */
function entryOf(name: string): string {
  const path = contract.exports[`.${name}`];
  if (path === undefined) throw new Error(`the contract has no entry point ${name}`);
  return posix.normalize(path);
}

/** In the package the contract is a neighbouring folder, not a dependency. */
function pointToContract(path: string): void {
  const file = join(folder, path);
  const text = readFileSync(file, 'utf8');
  const pointed = text.replaceAll(
    /(["'])@svc\/contract([^"']*)\1/g,
    (_whole, quote: string, entry: string) => {
      const target = entryOf(entry)
        .replace(/^src\//, 'contract/')
        .replace(/\.ts$/, '.js');
      const relative = posix.relative(dirname(path), target);
      return `${quote}${relative.startsWith('.') ? relative : `./${relative}`}${quote}`;
    },
  );
  if (pointed !== text) writeFileSync(file, pointed);
}

/** Removes files that users do not need: most of the contract is for servers, and most declarations are internal. */
function dropUnreached(): void {
  const entries = ENTRIES.map((entry) => entry.replace('/src/', '/').replace(/\.ts$/, '.js'));
  const programs = reachedFrom([...entries, 'sdk/platform/node-platform.js'], (path) => path);
  const types = reachedFrom(entries.slice(0, 2), (path) => path.replace(/(?:\.d)?\.[jt]s$/, '.d.ts'));
  for (const path of globSync(['**/*.js', '**/*.d.ts'], { cwd: folder }))
    if (!programs.has(path) && !types.has(path)) rmSync(join(folder, path));
}

/** @throws Error when a file imports a missing one, whose types would be `any` to a user's compiler */
function reachedFrom(entries: readonly string[], fileOf: (named: string) => string): ReadonlySet<string> {
  const reached = new Set<string>();
  const follow = (named: string): void => {
    const path = fileOf(named);
    if (reached.has(path)) return;
    reached.add(path);
    for (const target of neighboursOf(path)) follow(target);
  };
  for (const entry of entries) follow(entry);
  return reached;
}

function neighboursOf(path: string): string[] {
  const text = readFileSync(join(folder, path), 'utf8');
  const named = text.matchAll(/(?:from|import)[ (]["'](\.[^"']+)["']/g);
  return [...named].map(([, target = '']) => posix.join(dirname(path), target));
}

function packageManifest(): object {
  const entry = (path: string) => ({ types: `./sdk/${path}.d.ts`, default: `./sdk/${path}.js` });
  return {
    name: sdk.name,
    version: sdk.version,
    description: 'Sandboxes for untrusted code, on hardware you own: the client library of svc',
    license: sdk.license,
    repository: { ...repository, directory: 'packages/sdk' },
    keywords: ['sandbox', 'containers', 'agents'],
    type: 'module',
    sideEffects: false,
    engines: { node: '>=22' },
    imports: {
      '#platform': {
        node: './sdk/platform/node-platform.js',
        default: './sdk/platform/browser-platform.js',
      },
    },
    exports: { '.': entry('index'), './node': entry('node') },
    dependencies: dependenciesInUse(),
  };
}

function dependenciesInUse(): object {
  const texts = globSync(['**/*.js', '**/*.d.ts'], { cwd: folder }).map((path) =>
    readFileSync(join(folder, path), 'utf8'),
  );
  const isInUse = (name: string): boolean => texts.some((text) => text.includes(`from '${name}`));
  return Object.fromEntries(Object.entries(contract.dependencies).filter(([name]) => isInUse(name)));
}
