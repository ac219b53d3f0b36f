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
import { join, relative, resolve } from 'node:path';
import { build, type Rolldown } from 'vite';

/**
 * Builds what `svc` starts from into `packages/cli/build`: a few files instead of some two hundred modules, each of which takes a
 * process half a millisecond to find, read and link. Its first file looks whether the sources are still those that it was made of, and
 * runs them when they are not (docs/decisions/0120-the-cli-is-built.md). Does nothing when they are. `node scripts/build-cli.ts`
 */
const ROOT = resolve(import.meta.dirname, '..');
const CLI = join(ROOT, 'packages/cli');
const FOLDER = join(CLI, 'build');
/** Ours, and what they need at each start. The rest is loaded from where it is, by the few commands that use it. */
const INSIDE = /^(?:\.|\/|#platform$|@svc\/(?:sdk|contract)(?:\/|$)|commander$|cborg$)/;

/** For how long files of an earlier build stay: a command may still run from them. */
const KEPT_MS = 24 * 60 * 60_000;

/** What a file was when it was read: by these two, as make does. */
type MadeOf = readonly [path: string, size: number, modifiedMs: number];

if (isCurrent()) console.log('the CLI is in step with its sources');
else await make();

async function make(): Promise<void> {
  const made = `${FOLDER}.${process.pid}`;
  try {
    const { sources, entry } = await buildInto(made);
    const more = [import.meta.filename, join(ROOT, 'package-lock.json')].map(describe);
    writeFileSync(join(made, 'main.cjs'), mainText([...sources, ...more], entry));
    mkdirSync(FOLDER, { recursive: true });
    // Beside those of an earlier build, which may run; the first file, which says what belongs to it, comes last.
    for (const name of globSync('*', { cwd: made }).toSorted((a) => (a === 'main.cjs' ? 1 : -1)))
      put(made, name);
    for (const name of globSync('*', { cwd: FOLDER })) removeOld(join(FOLDER, name));
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  console.log(`built the CLI in ${FOLDER}`);
}

/** Readable for everybody: some commands become the server's user before they have loaded all of themselves. */
function put(made: string, name: string): void {
  chmodSync(join(made, name), 0o644);
  renameSync(join(made, name), join(FOLDER, name));
}

function removeOld(file: string): void {
  if (Date.now() - statSync(file).mtimeMs > KEPT_MS) rmSync(file);
}

/** What it was made of, but for what package-lock.json tells; and the file that it begins with. */
async function buildInto(
  outDir: string,
): Promise<{ readonly sources: readonly MadeOf[]; readonly entry: string }> {
  const sources = new Map<string, MadeOf>();
  await build({
    configFile: false,
    root: CLI,
    logLevel: 'error',
    plugins: [ownPlaces(sources)],
    ssr: { noExternal: true },
    build: {
      ssr: true,
      outDir,
      target: 'node24',
      minify: false,
      rolldownOptions: {
        input: { cli: join(CLI, 'src/run-cli.ts') },
        external: (name) => !INSIDE.test(name),
        output: { format: 'cjs', entryFileNames: '[name]-[hash].cjs', chunkFileNames: '[name]-[hash].cjs' },
      },
    },
  });
  const [entry = ''] = globSync('cli-*.cjs', { cwd: outDir });
  return { sources: [...sources.values()], entry };
}

/** A module that asks where it is gets the place of its source, from which it finds what lies beside it. */
function ownPlaces(sources: Map<string, MadeOf>): Rolldown.Plugin {
  return {
    name: 'own-places',
    transform(code, id) {
      if (!id.startsWith('/') || id.includes('/node_modules/')) return null;
      sources.set(id, describe(id));
      const place = `new URL(${JSON.stringify(relative(FOLDER, id))}, process.getBuiltinModule('node:url').pathToFileURL(__filename))`;
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

function describe(file: string): MadeOf {
  const { size, mtimeMs } = statSync(file);
  return [relative(FOLDER, file), size, mtimeMs];
}

function mainText(madeOf: readonly MadeOf[], entry: string): string {
  return `// Made by scripts/build-cli.ts.
const { statSync } = require('node:fs');
const MADE_OF = ${JSON.stringify(madeOf)};
const isSame = ([path, size, modifiedMs]) => {
  const now = statSync(__dirname + '/' + path, { throwIfNoEntry: false });
  return now?.size === size && now.mtimeMs === modifiedMs;
};
if (MADE_OF.every(isSame)) void require('./${entry}').runCli(process.argv.slice(2)).then((code) => process.exit(code));
else void import('../src/main.ts');
`;
}

function isCurrent(): boolean {
  try {
    const text = readFileSync(join(FOLDER, 'main.cjs'), 'utf8');
    const madeOf = JSON.parse(/MADE_OF = (.*);/.exec(text)?.[1] ?? '') as readonly MadeOf[];
    return madeOf.every(([path, ...was]) => {
      const [, ...now] = describe(join(FOLDER, path));
      return String(now) === String(was);
    });
  } catch {
    // It was never built, or a source is gone.
    return false;
  }
}
