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
 * Builds the programs that are started from this checkout: a few files each instead of some hundred modules, every one of which takes a
 * process half a millisecond to find, read and link. The first file of a program looks whether the sources are still those that it was
 * made of, and runs them when they are not (docs/decisions/0164-every-program-is-built.md). What is in step with its sources is left
 * alone. `node scripts/build-programs.ts`
 */
const ROOT = resolve(import.meta.dirname, '..');
/** They look for parts of their own beside themselves, or must be there once in a process. */
const NEVER_INSIDE = ['typebox', 'pg', 'ssh2'];
/** How long files of an earlier build stay: a program that runs still loads some of them when they are needed. */
const KEPT_MS = 30 * 24 * 60 * 60_000;

/** In folders of the checkout. */
interface Program {
  readonly name: string;
  /** Where it is put. */
  readonly folder: string;
  /** What it is built from. */
  readonly source: string;
  readonly format: 'cjs' | 'es';
  /** What the first file is called, and does with what was built; `same` tells of a file whether it is the one that was built from. */
  readonly first: string;
  readonly start: (built: string) => string;
  /** Names of modules that become part of it; the others are loaded from where they are. */
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
    // What it needs at each start. The rest few commands use.
    isInside: (name) => /^(?:\.|\/|#platform$|@svc\/(?:sdk|contract)(?:\/|$)|commander$|cborg$)/.test(name),
  },
  service('the server', 'packages/server/build', 'packages/server/src/main.ts'),
  service('the engine', 'packages/engine/build/daemon', 'packages/engine/src/daemon/main.ts'),
  service('the resolver', 'packages/engine/build/resolver', 'packages/engine/src/egress/resolver-main.ts'),
  service('the proxy', 'packages/engine/build/proxy', 'packages/engine/src/egress/proxy-main.ts'),
];

/** What a file was when it was read: by these two, as make does. */
type MadeOf = readonly [path: string, size: number, modifiedMs: number];

for (const program of PROGRAMS) {
  if (isCurrent(program)) console.log(`${program.name} is in step with its sources`);
  else await make(program);
}

/** One that runs for long: all that it loads is inside, also what it loads later. */
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
    // Beside those of an earlier build, which may run; the first file, which says what belongs to it, comes last.
    for (const name of globSync('*', { cwd: made }).toSorted((a) => (a === program.first ? 1 : -1)))
      put(join(made, name), folder);
    for (const name of globSync('*', { cwd: folder })) removeOld(join(folder, name));
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  console.log(`built ${program.name} in ${folder}`);
}

/** Readable for everybody: who becomes another user has not loaded all of itself by then. */
function put(file: string, folder: string): void {
  chmodSync(file, 0o644);
  renameSync(file, join(folder, basename(file)));
}

function removeOld(file: string): void {
  if (Date.now() - statSync(file).mtimeMs > KEPT_MS) rmSync(file);
}

/** What it was made of, but for what package-lock.json tells; and the file that it begins with. */
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

/** A module that asks where it is gets the place of its source, from which it finds what lies beside it. */
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
    // It was never built, or a source is gone.
    return false;
  }
}
