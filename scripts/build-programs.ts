import {
  chmodSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { build, type Rolldown } from 'vite';

/**
 * Bundles the programs that are started from this checkout: a few files each instead of some hundred modules, every one of which
 * takes a process half a millisecond to find, read and link. The first file of a program checks whether the sources have changed
 * since the build, and then runs the sources (docs/decisions/0164-server-and-engine-are-built.md). Up-to-date programs are left alone.
 * `node scripts/build-programs.ts`
 */
const ROOT = resolve(import.meta.dirname, '..');
/** Packages that are not bundled: they load files beside themselves, or must exist once in a process. */
const NEVER_INSIDE = ['typebox', 'pg', 'ssh2'];
/** How long files of an earlier build are kept, because running programs still load some of them on demand. */
const KEPT_MS = 30 * 24 * 60 * 60_000;

/** In folders of the checkout. */
interface Program {
  readonly name: string;
  /** The output folder. */
  readonly folder: string;
  /** The entry point. */
  readonly source: string;
  readonly format: 'cjs' | 'es';
  /** Name and code of the first file; `same` checks whether a source file is unchanged since the build. */
  readonly first: string;
  readonly start: (built: string) => string;
  /** Modules that are bundled; the others are loaded from their places. */
  readonly isInside: (name: string) => boolean;
}

const PROGRAMS: readonly Program[] = [
  {
    name: 'the CLI',
    folder: 'packages/cli/build',
    source: 'packages/cli/src/run-cli.ts',
    format: 'cjs',
    first: 'main.cjs',
    start: (built) => `const isSame = MADE_OF.every(same);
if (isSame) void require('./${built}').runCli(process.argv.slice(2)).then((code) => process.exit(code));
else void import('../src/main.ts');`,
    // The modules of every start; the rest is used by few commands.
    isInside: (name) => /^(?:\.|\/|#platform$|@svc\/(?:sdk|contract)(?:\/|$)|commander$|cborg$)/.test(name),
  },
  service('the server', 'packages/server/build', 'packages/server/src/main.ts'),
  service('the engine', 'packages/engine/build/daemon', 'packages/engine/src/daemon/main.ts'),
  service('the resolver', 'packages/engine/build/resolver', 'packages/engine/src/egress/resolver-main.ts'),
  service('the proxy', 'packages/engine/build/proxy', 'packages/engine/src/egress/proxy-main.ts'),
];

/** Identifies the version of a file by size and time, as make does. */
type MadeOf = readonly [path: string, size: number, modifiedMs: number];

for (const program of PROGRAMS) {
  if (isCurrent(program)) console.log(`${program.name} is in step with its sources`);
  else await make(program);
}

/** A long-running program: everything is bundled, also modules that are loaded later. */
function service(name: string, folder: string, source: string): Program {
  return {
    name,
    folder,
    source,
    format: 'es',
    first: 'main.js',
    start: (built) =>
      `await import(MADE_OF.every(same) ? './${built}' : '${relative(join(ROOT, folder), join(ROOT, source))}');`,
    isInside: (module) =>
      !module.startsWith('node:') &&
      !NEVER_INSIDE.some((each) => module === each || module.startsWith(`${each}/`)),
  };
}

async function make(program: Program): Promise<void> {
  const folder = join(ROOT, program.folder);
  const made = `${folder}.${process.pid}`;
  try {
    const { sources, entry } = await buildInto(made, program);
    const more = [import.meta.filename, join(ROOT, 'package-lock.json')].map((file) =>
      describe(folder, file),
    );
    writeFileSync(join(made, program.first), firstText(program, [...sources, ...more], entry));
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o755);
    // Written beside the files of an earlier build, which may be in use; the first file, which names the others, comes last.
    for (const name of globSync('*', { cwd: made }).toSorted((a) => (a === program.first ? 1 : -1)))
      put(join(made, name), folder);
    for (const name of globSync('*', { cwd: folder })) removeOld(join(folder, name));
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  console.log(`built ${program.name} in ${folder}`);
}

/** Readable for all users: a program that changes its user loads further files afterwards. */
function put(file: string, folder: string): void {
  chmodSync(file, 0o644);
  renameSync(file, join(folder, basename(file)));
}

function removeOld(file: string): void {
  if (Date.now() - statSync(file).mtimeMs > KEPT_MS) rmSync(file);
}

/** The sources of the build, without packages that package-lock.json pins, and the entry file. */
async function buildInto(
  outDir: string,
  { folder, source, format, isInside }: Program,
): Promise<{ readonly sources: readonly MadeOf[]; readonly entry: string }> {
  const sources = new Map<string, MadeOf>();
  const extension = format === 'cjs' ? 'cjs' : 'js';
  await build({
    configFile: false,
    root: dirname(join(ROOT, folder)),
    logLevel: 'error',
    plugins: [ownPlaces(join(ROOT, folder), format, sources)],
    ssr: { noExternal: true },
    build: {
      ssr: true,
      outDir,
      target: 'node24',
      minify: false,
      rolldownOptions: {
        input: { entry: join(ROOT, source) },
        external: (name) => !isInside(name),
        output: {
          format,
          entryFileNames: `[name]-[hash].${extension}`,
          chunkFileNames: `[name]-[hash].${extension}`,
        },
      },
    },
  });
  const [entry = ''] = globSync(`entry-*.${extension}`, { cwd: outDir });
  return { sources: [...sources.values()], entry };
}

/** Replaces `import.meta.url` by the place of the source, so that a module finds the files beside it. */
function ownPlaces(folder: string, format: Program['format'], sources: Map<string, MadeOf>): Rolldown.Plugin {
  const here =
    format === 'es' ? 'import.meta.url' : "process.getBuiltinModule('node:url').pathToFileURL(__filename)";
  return {
    name: 'own-places',
    transform(code, id) {
      if (!id.startsWith('/') || id.includes('/node_modules/')) return null;
      sources.set(id, describe(folder, id));
      const place = `new URL(${JSON.stringify(relative(folder, id))}, ${here})`;
      const answers = {
        url: `${place}.href`,
        filename: `process.getBuiltinModule('node:url').fileURLToPath(${place})`,
        dirname: `process.getBuiltinModule('node:url').fileURLToPath(new URL('.', ${place}))`,
      };
      const text = code.replaceAll(
        /\bimport\.meta\.(url|filename|dirname)\b/g,
        (_, name: keyof typeof answers) => answers[name],
      );
      return text === code ? null : { code: text, map: null };
    },
  };
}

function describe(folder: string, file: string): MadeOf {
  const { size, mtimeMs } = statSync(file);
  return [relative(folder, file), size, mtimeMs];
}

function firstText({ format, start }: Program, madeOf: readonly MadeOf[], entry: string): string {
  const here = format === 'es' ? 'import.meta.dirname' : '__dirname';
  return `// Made by scripts/build-programs.ts.
const { statSync } = process.getBuiltinModule('node:fs');
const MADE_OF = ${JSON.stringify(madeOf)};
const same = ([path, size, modifiedMs]) => {
  const now = statSync(${here} + '/' + path, { throwIfNoEntry: false });
  return now?.size === size && now.mtimeMs === modifiedMs;
};
${start(entry)}
`;
}

function isCurrent({ folder, first }: Program): boolean {
  const place = join(ROOT, folder);
  try {
    const text = readFileSync(join(place, first), 'utf8');
    const madeOf = JSON.parse(/MADE_OF = (.*);/.exec(text)?.[1] ?? '') as readonly MadeOf[];
    return madeOf.every(([path, ...was]) => {
      const [, ...now] = describe(place, join(place, path));
      return String(now) === String(was);
    });
  } catch {
    // There is no earlier build, or a source was removed.
    return false;
  }
}
