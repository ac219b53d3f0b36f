import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, realpath, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { importChanged } from './image-fixture.ts';
import type { TestEngine } from './start-engine.ts';

const run = promisify(execFile);
const UNUSED_MODULES =
  /\/(?:dist-packages|site-packages|test|turtledemo|tests|ensurepip|idlelib|lib2to3|__pycache__|config-[^/]*)(?:\/|$)/;

/** Image `python` from the interpreter of this host: much quicker than from packages. */
export async function importPython(engine: Pick<TestEngine, 'client'>): Promise<void> {
  await importChanged(engine, 'python', addPython);
}

/** Debian's interpreter on this host, with its libraries: others may lie where only root can read. */
export async function addPython(root: string): Promise<void> {
  const script = 'import os, sys; print(sys.executable); print(os.path.dirname(os.__file__))';
  const [program = '', library = ''] = (await run('/usr/bin/python3', ['-c', script])).stdout
    .trim()
    .split('\n');
  await copyProgram(root, program, 'python3');
  await cp(library, join(root, library), { recursive: true, filter: (path) => !UNUSED_MODULES.test(path) });
  // Some modules are written in C, and linked against more than the interpreter is.
  const modules = join(library, 'lib-dynload');
  for (const name of await readdir(modules)) await copyLibraries(root, join(modules, name));
}

/** Image `node` from the one that runs this. */
export async function importNode(engine: Pick<TestEngine, 'client'>, reference = 'node'): Promise<void> {
  await importChanged(engine, reference, async (root) => await copyProgram(root, process.execPath, 'node'));
}

/** Debian's git, for repositories in folders and over HTTP. */
export async function addGit(root: string): Promise<void> {
  await copyProgram(root, '/usr/bin/git', 'git');
  const core = '/usr/lib/git-core';
  await mkdir(join(root, core), { recursive: true });
  for (const name of ['git', 'git-upload-pack', 'git-receive-pack'])
    await symlink('/usr/bin/git', join(root, core, name));
  await cp(`${core}/git-remote-http`, join(root, core, 'git-remote-http'));
  await symlink('git-remote-http', join(root, core, 'git-remote-https'));
  await copyLibraries(root, `${core}/git-remote-http`);
}

/** With the libraries that it is linked against. */
export async function copyProgram(root: string, program: string, name: string): Promise<void> {
  await copyFile(await realpath(program), join(root, 'usr/bin', name));
  await copyLibraries(root, program);
}

export async function copyLibraries(root: string, program: string): Promise<void> {
  const { stdout } = await run('ldd', [program]);
  for (const [library] of stdout.matchAll(/\/\S+\.so\S*/g)) {
    await copyFile(await realpath(library), join(root, library));
  }
}

async function copyFile(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await cp(from, to);
}
