import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build, type Plugin } from 'vite';

/**
 * Builds the npm package of the command line: all of it in a few files, without dependencies, for Node 22 and newer. It talks to
 * servers; what works on the machine of a server needs the checkout there, and is refused.
 * `node scripts/build-cli-package.ts [FOLDER]`; the folder can be given to `npm install` or `npm pack`.
 */
const ROOT = resolve(import.meta.dirname, '..');
const CLI = join(ROOT, 'packages/cli');
const folder = resolve(process.argv[2] ?? join(ROOT, 'packages/cli/package'));
/** What the server and the engine give to commands that also talk to servers elsewhere. All else of them is refused. */
const KEPT: Readonly<Record<string, string>> = {
  readStatus: 'packages/server/src/local-commands/read-status.ts',
  expiryAfter: 'packages/server/src/access/duration.ts',
};

const REFUSAL =
  'this works on the machine of the server, with the svc of its checkout; this one is the client alone\n  try: svc context add --help   # to talk to a server elsewhere';

// SAFETY: replaces only the folder of an earlier build.
if (globSync('*', { cwd: folder }).length > 0) {
  readFileSync(join(folder, 'svc.js'));
  rmSync(folder, { recursive: true });
}
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'THIRD-PARTY-LICENSES'), licencesOf(await bundle()));
cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
cpSync(join(CLI, 'package-readme.md'), join(folder, 'README.md'));
const { version } = writeManifest();
console.log(`built @svc/cli ${version} in ${folder}`);

/** Returns the folders of the packages that are in it. */
async function bundle(): Promise<ReadonlySet<string>> {
  const packages = new Set<string>();
  const collectPackages: Plugin = {
    name: 'collect-packages',
    moduleParsed({ id }) {
      const [found] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? [];
      if (found !== undefined) packages.add(found);
    },
  };
  await build({
    configFile: false,
    root: CLI,
    logLevel: 'error',
    plugins: [withoutServer(), collectPackages],
    ssr: { noExternal: true },
    build: {
      ssr: true,
      outDir: folder,
      target: 'node22',
      minify: false,
      rolldownOptions: {
        input: { svc: join(CLI, 'src/main.ts') },
        output: {
          format: 'es',
          entryFileNames: '[name].js',
          chunkFileNames: 'parts/[name]-[hash].js',
          banner: (chunk) => (chunk.isEntry ? '#!/usr/bin/env node' : ''),
        },
      },
    },
  });
  return packages;
}

/** Their licences ask for a copy beside their code. */
function licencesOf(packages: ReadonlySet<string>): string {
  return [...packages]
    .toSorted()
    .map((place) => {
      const { name, version } = readManifest(join(place, 'package.json'));
      const [file] = globSync('{LICENSE,LICENCE,license}*', { cwd: place });
      if (file === undefined) throw new Error(`${name} has no licence in ${place}`);
      return `${name} ${version}\n\n${readFileSync(join(place, file), 'utf8').trim()}\n`;
    })
    .join('\n----\n\n');
}

/** Commands load the server and the engine on demand. Without them they end with a sentence. */
function withoutServer(): Plugin {
  const prefix = '\0without:';
  return {
    name: 'without-server',
    enforce: 'pre',
    resolveId(name) {
      // npm puts the program of a package on PATH.
      const isRefused = /^@svc\/(?:server|engine)(?:\/|$)/.test(name) || name === './commands/install.ts';
      return isRefused ? `${prefix}${name}` : null;
    },
    load(id) {
      if (!id.startsWith(prefix)) return null;
      const usageError = JSON.stringify(join(CLI, 'src/usage-error.ts'));
      const refuse = `() => { throw new UsageError(${JSON.stringify(REFUSAL)}); }`;
      if (id.endsWith('install.ts')) {
        const command = "new Command('install').allowUnknownOption().allowExcessArguments()";
        const imports = `import { Command } from 'commander';\nimport { UsageError } from ${usageError};`;
        return `${imports}\nexport const createCommand = () => ${command}.action(${refuse});`;
      }
      if (id !== `${prefix}@svc/server/admin`)
        return `import { UsageError } from ${usageError};\n(${refuse})();`;
      return [
        `import { UsageError } from ${usageError};`,
        `const refuse = ${refuse};`,
        ...adminNames().map((name) => adminExport(name)),
      ].join('\n');
    },
  };
}

function adminNames(): readonly string[] {
  const index = readFileSync(join(ROOT, 'packages/server/src/local-commands/index.ts'), 'utf8');
  const named = index.matchAll(/^export \{([^}]*)\}/gm);
  return [...named].flatMap(([, names = '']) => names.replaceAll(/\btype \w+/g, '').match(/\w+/g) ?? []);
}

function adminExport(name: string): string {
  const home = KEPT[name];
  return home === undefined
    ? `export const ${name} = refuse;`
    : `export { ${name} } from ${JSON.stringify(join(ROOT, home))};`;
}

function writeManifest(): { readonly version: string } {
  const cli = readManifest(join(CLI, 'package.json'));
  const { repository } = readManifest(join(ROOT, 'package.json'));
  const manifest = {
    name: cli.name,
    version: cli.version,
    description:
      'Sandboxes for untrusted code, on hardware you own: the command line of svc for servers elsewhere',
    license: cli.license,
    repository: { ...repository, directory: 'packages/cli' },
    keywords: ['sandbox', 'containers', 'agents', 'cli'],
    type: 'module',
    engines: { node: '>=22' },
    bin: { svc: 'svc.js' },
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return cli;
}

function readManifest(path: string): {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly repository: object;
} {
  return JSON.parse(readFileSync(path, 'utf8')) as ReturnType<typeof readManifest>;
}
