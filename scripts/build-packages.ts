import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

/**
 * Makes the packages that are installed elsewhere: `@svc/sdk`, `@svc/cli` and the adapters in TypeScript for npm, `svc-sdk` for Python
 * as a wheel and as an archive of sources. `node scripts/build-packages.ts [FOLDER] [--npm | --adapters | --python | --tools]`: in dist/
 * unless another folder is given; of one kind alone, or only the program that makes wheels.
 */
const ROOT = resolve(import.meta.dirname, '..');
const PYTHON_SDK = join(ROOT, 'packages/sdk-python');
/** The program that makes wheels, in the versions of requirements-build.txt. */
const PYTHON_TOOLS = join(ROOT, 'node_modules/.cache/svc-python-tools');
const KINDS = {
  npm: { type: 'boolean' },
  adapters: { type: 'boolean' },
  python: { type: 'boolean' },
  tools: { type: 'boolean' },
} as const;
const { values, positionals } = parseArgs({ options: KINDS, allowPositionals: true });
const isWhole = Object.keys(values).length === 0;
const target = resolve(positionals[0] ?? join(ROOT, 'dist'));
const stage = mkdtempSync(join(tmpdir(), 'svc-packages-'));

try {
  if (values.npm === true || isWhole) packAllNpm();
  if (values.adapters === true || isWhole) packAdapters();
  if (values.python === true || values.tools === true || isWhole) installPythonTools();
  if (values.python === true || isWhole) packPython();
  if (values.tools !== true)
    console.log(`made ${globSync('*', { cwd: target }).toSorted().join(', ')} in ${target}`);
} finally {
  rmSync(stage, { recursive: true });
}

function packAllNpm(): void {
  clear('svc-{sdk,cli}-*.tgz');
  packNpm('sdk', ['build-sdk.ts']);
  packNpm('cli', ['build-cli-package.ts']);
}

/** Those in TypeScript; pip makes the ones in Python of their folders. */
function packAdapters(): void {
  for (const path of globSync('*/package.json', { cwd: join(ROOT, 'adapters') })) {
    const name = dirname(path);
    clear(`svc-${name}-*.tgz`);
    packNpm(name, ['build-adapter.ts', name]);
  }
}

/** SAFETY: removes only packages of an earlier build. */
function clear(names: string): void {
  mkdirSync(target, { recursive: true });
  for (const name of globSync(names, { cwd: target })) rmSync(join(target, name));
}

function packNpm(name: string, [program = '', ...words]: readonly string[]): void {
  const folder = join(stage, name);
  run(process.execPath, [join(ROOT, 'scripts', program), ...words, folder]);
  run('npm', ['pack', '--silent', '--pack-destination', target], { cwd: folder });
}

/** Downloads them once; Debian's own are older. */
function installPythonTools(): void {
  const requirements = join(PYTHON_SDK, 'requirements-build.txt');
  const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');
  const stamp = join(PYTHON_TOOLS, '.svc-installed');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  rmSync(PYTHON_TOOLS, { recursive: true, force: true });
  const options = '--quiet --no-deps --require-hashes --no-compile --disable-pip-version-check';
  const pip = ['-m', 'pip', 'install', ...options.split(' '), '--only-binary', ':all:'];
  run('/usr/bin/python3', [
    ...pip,
    '--root-user-action',
    'ignore',
    '--target',
    PYTHON_TOOLS,
    '-r',
    requirements,
  ]);
  writeFileSync(stamp, wanted);
}

function packPython(): void {
  clear('svc_sdk-*');
  const folder = join(stage, 'python');
  for (const name of ['pyproject.toml', 'README.md'])
    cpSync(join(PYTHON_SDK, name), join(folder, name), { recursive: true });
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  const isSource = (path: string) => !path.endsWith('__pycache__');
  cpSync(join(PYTHON_SDK, 'src'), join(folder, 'src'), { recursive: true, filter: isSource });
  const env = { ...process.env, PYTHONPATH: PYTHON_TOOLS, PYTHONDONTWRITEBYTECODE: '1' };
  run('/usr/bin/python3', ['-m', 'hatchling', 'build', '--directory', target], { cwd: folder, env });
}

/** What it prints is shown when it fails. */
function run(program: string, args: readonly string[], options: object = {}): void {
  execFileSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
}
