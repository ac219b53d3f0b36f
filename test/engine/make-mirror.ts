import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What a package of each kind says when it has arrived. */
export const GREETING = 'hello from the mirror';

/** A repository of git, an index of pip and one of apt, each with one small thing. */
export async function makeMirror(folder: string): Promise<void> {
  await Promise.all([makeRepository(folder), makeWheel(folder), makeDebianPackage(folder)]);
}

async function makeRepository(folder: string): Promise<void> {
  const work = join(folder, 'work');
  const bare = join(folder, 'git/project.git');
  await mkdir(work, { recursive: true });
  await writeFile(join(work, 'README'), `${GREETING}\n`);
  const git = (...words: readonly string[]) =>
    run('git', ['-C', work, '-c', 'user.name=svc', '-c', 'user.email=svc@example.com', ...words]);
  await git('init', '-q', '-b', 'main');
  await git('add', 'README');
  await git('commit', '-q', '-m', 'first');
  await git('clone', '-q', '--bare', work, bare);
  await rm(work, { recursive: true });
}

const WHEEL = 'svc_hello-1.0-py3-none-any.whl';
const WRITE_WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    info = 'svc_hello-1.0.dist-info'
    wheel.writestr('svc_hello.py', f'print({sys.argv[2]!r})')
    wheel.writestr(f'{info}/METADATA', 'Metadata-Version: 2.1\\nName: svc-hello\\nVersion: 1.0\\n')
    wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: svc\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(f'{info}/RECORD', f'svc_hello.py,,\\n{info}/METADATA,,\\n{info}/WHEEL,,\\n{info}/RECORD,,\\n')
`;

async function makeWheel(folder: string): Promise<void> {
  const index = join(folder, 'simple/svc-hello');
  await mkdir(index, { recursive: true });
  await run('/usr/bin/python3', ['-c', WRITE_WHEEL, join(index, WHEEL), GREETING]);
  await writeFile(join(index, 'index.html'), `<!DOCTYPE html><a href="${WHEEL}">${WHEEL}</a>`);
}

const DEB = 'svc-hello_1.0_all.deb';
const CONTROL = [
  'Package: svc-hello',
  'Version: 1.0',
  'Architecture: all',
  'Maintainer: svc <svc@example.com>',
  `Description: ${GREETING}`,
];

async function makeDebianPackage(folder: string): Promise<void> {
  const apt = join(folder, 'apt');
  const tree = join(folder, 'tree');
  await mkdir(join(tree, 'DEBIAN'), { recursive: true });
  await mkdir(join(tree, 'usr/share'), { recursive: true });
  await mkdir(apt, { recursive: true });
  await writeFile(join(tree, 'DEBIAN/control'), `${CONTROL.join('\n')}\n`);
  await writeFile(join(tree, 'usr/share/svc-hello'), `${GREETING}\n`);
  await run('dpkg-deb', ['--root-owner-group', '--build', tree, join(apt, DEB)]);
  await rm(tree, { recursive: true });
  const { size } = await stat(join(apt, DEB));
  const packages = [
    ...CONTROL,
    `Filename: ./${DEB}`,
    `Size: ${size}`,
    `SHA256: ${await sumOf(join(apt, DEB))}`,
  ];
  await writeFile(join(apt, 'Packages'), `${packages.join('\n')}\n\n`);
  const file = join(apt, 'Packages');
  const line = ` ${await sumOf(file)} ${(await stat(file)).size} Packages`;
  await writeFile(join(apt, 'Release'), `Date: ${new Date().toUTCString()}\nSHA256:\n${line}\n`);
}

async function sumOf(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}

/** Where Debian's packages of these names have what they bring, the part that runs. */
const DIST_PACKAGES = '/usr/lib/python3/dist-packages';
const MODULES = ['certifi', 'chardet', 'idna', 'pip', 'requests', 'urllib3', 'six.py'];

/** requests and pip beside Debian's Python. */
export async function addPythonPackages(root: string): Promise<void> {
  for (const name of MODULES) {
    // Debian 13's urllib3 needs no six any more. Without any other module the clients would fail.
    if (!existsSync(join(DIST_PACKAGES, name))) continue;
    await cp(join(DIST_PACKAGES, name), join(root, DIST_PACKAGES, name), {
      recursive: true,
      filter: (path) => !path.includes('__pycache__'),
    });
  }
}
