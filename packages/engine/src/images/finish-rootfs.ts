import { execFile } from 'node:child_process';
import {
  access,
  chmod,
  copyFile,
  cp,
  mkdir,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writeAccounts } from './demo-accounts.ts';

const run = promisify(execFile);

/** Applets with another meaning in Debian, or without use in a sandbox. */
const UNWANTED_APPLETS = new Set(['busybox', 'dpkg', 'dpkg-deb', 'init', 'linuxrc', 'rpm']);

/** Replaces the scripts of the packages. */
export async function finishDebian(root: string, signal: AbortSignal): Promise<void> {
  await writeAccounts(root);
  await writeCertificates(root);
  await copyFile(join(root, 'usr/share/base-files/profile'), join(root, 'etc/profile'));
  await copyFile(join(root, 'usr/share/base-files/dot.bashrc'), join(root, 'root/.bashrc'));
  await writeFile(
    join(root, 'etc/nsswitch.conf'),
    'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n',
  );
  // A link of Debian's alternatives system.
  await linkIfMissing(root, 'usr/bin/awk', 'mawk');
  await linkIfMissing(root, 'usr/bin/which', 'which.debianutils');
  await linkApplets(root, signal);
  // SAFETY: `-r` confines the tool to the folder; it holds only packages signed by Debian.
  await run('ldconfig', ['-r', root], { signal, env: TOOL_ENVIRONMENT });
  await archiveLocale(root, signal);
}

/**
 * Builds a locale archive: programs then open one file for their locale instead of some thirty, which saves 2 ms of the 15 that `echo`
 * takes on gVisor.
 */
async function archiveLocale(root: string, signal: AbortSignal): Promise<void> {
  const command = ['/usr/bin/localedef', '--add-to-archive', '/usr/lib/locale/C.utf8'];
  // SAFETY: runs a program of the new root inside it, as root; it comes from a package signed by Debian.
  await run('chroot', [root, ...command], { signal, env: TOOL_ENVIRONMENT });
}

/** Adds `python`, and lets pip install system-wide: the root belongs to one sandbox, so there is no system to protect. */
export async function finishPython(root: string, signal: AbortSignal): Promise<void> {
  await linkIfMissing(root, 'usr/bin/python', 'python3');
  const versions = (await readdir(join(root, 'usr/lib'))).filter((name) => /^python3\.\d+$/.test(name));
  for (const version of versions) {
    await rm(join(root, 'usr/lib', version, 'EXTERNALLY-MANAGED'), { force: true });
  }
  // Without compiled modules every start of Python takes several times as long.
  const compile = [
    '-m',
    'compileall',
    '-q',
    '--invalidation-mode',
    'unchecked-hash',
    '-x',
    '/(tests?|idlelib|lib2to3)/',
  ];
  const folders = [...versions.map((version) => `/usr/lib/${version}`), '/usr/lib/python3/dist-packages'];
  // SAFETY: as above.
  await run('chroot', [root, '/usr/bin/python3', ...compile, ...folders], { signal, env: TOOL_ENVIRONMENT });
}

const PLAIN_ALGEBRA = [
  ['libblas.so.3', 'blas'],
  ['liblapack.so.3', 'lapack'],
] as const;
const FAST_ALGEBRA = ['libblas.so.3', 'liblapack.so.3', 'libopenblas.so.0'].map(
  (library) => [library, 'openblas-pthread'] as const,
);

/** Links of Debian's alternatives system: numpy needs one of several libraries under a shared name. */
async function linkAlgebra(root: string): Promise<void> {
  const folders = (await readdir(join(root, 'usr/lib'))).filter((name) => name.endsWith('-linux-gnu'));
  for (const folder of folders) {
    const hasFast = await exists(join(root, 'usr/lib', folder, 'openblas-pthread'));
    for (const [library, place] of hasFast ? FAST_ALGEBRA : PLAIN_ALGEBRA) {
      await linkIfMissing(root, join('usr/lib', folder, library), join(place, library));
    }
  }
}

/** Removes files for compilers, a third of the gigabyte, which the image has no use for; and caches the list of fonts for the first chart. */
export async function finishCode(root: string, signal: AbortSignal): Promise<void> {
  await linkAlgebra(root);
  await rm(join(root, 'usr/include'), { recursive: true, force: true });
  for (const entry of await readdir(join(root, 'usr/lib'), { recursive: true })) {
    if (entry.endsWith('.a')) await rm(join(root, 'usr/lib', entry), { force: true });
  }
  await finishPython(root, signal);
  const list = 'import matplotlib.font_manager';
  const env = { ...TOOL_ENVIRONMENT, HOME: '/root' };
  // SAFETY: as above.
  await run('chroot', [root, '/usr/bin/python3', '-c', list], { signal, env });
}

/** Installs Node beside Debian's libraries, and npm when the host has one to copy. */
export async function finishNode(root: string, nodeBinary: string, npmFolder: string | null): Promise<void> {
  await mkdir(join(root, 'usr/local/bin'), { recursive: true });
  await copyFile(nodeBinary, join(root, 'usr/local/bin/node'));
  await chmod(join(root, 'usr/local/bin/node'), 0o755);
  if (npmFolder === null) return;
  const modules = join(root, 'usr/local/lib/node_modules');
  await mkdir(modules, { recursive: true });
  await cp(npmFolder, join(modules, 'npm'), { recursive: true, dereference: true });
  for (const name of ['npm', 'npx']) {
    await linkIfMissing(root, `usr/local/bin/${name}`, `../lib/node_modules/npm/bin/${name}-cli.js`);
  }
}

const TOOL_ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C.UTF-8',
};

async function writeCertificates(root: string): Promise<void> {
  const folder = join(root, 'usr/share/ca-certificates/mozilla');
  const names = (await readdir(folder)).filter((name) => name.endsWith('.crt')).sort();
  const certificates = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  await mkdir(join(root, 'etc/ssl/certs'), { recursive: true });
  await writeFile(
    join(root, 'etc/ssl/certs/ca-certificates.crt'),
    certificates.map((text) => `${text.trim()}\n`).join(''),
  );
}

/** Links busybox applets for missing programs: vi, less, wget, nc, ping, unzip and more. */
async function linkApplets(root: string, signal: AbortSignal): Promise<void> {
  const { stdout } = await run(join(root, 'usr/bin/busybox'), ['--list'], { signal, env: TOOL_ENVIRONMENT });
  const applets = stdout.split('\n').filter((name) => name !== '' && !UNWANTED_APPLETS.has(name));
  const taken = new Set([
    ...(await readdir(join(root, 'usr/bin'))),
    ...(await readdir(join(root, 'usr/sbin'))),
  ]);
  for (const name of applets) {
    if (!taken.has(name)) await symlink('busybox', join(root, 'usr/bin', name));
  }
}

async function linkIfMissing(root: string, path: string, target: string): Promise<void> {
  if (!(await exists(join(root, path)))) await symlink(target, join(root, path));
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
