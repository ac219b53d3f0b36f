import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const ROOT = resolve(import.meta.dirname, '../../..');
const DOWNLOADS = join(import.meta.dirname, 'build');
const PYTHON = '/usr/bin/python3';
const run = promisify(execFile);

/** Which versions of what the wheel depends on: of `types` there is the type checker too. */
export type Versions = 'oldest' | 'newest' | 'types';

/** Makes the wheel and the archive of sources in a folder; returns the paths of both. */
export async function buildWheel(
  folder: string,
): Promise<{ readonly wheel: string; readonly sources: string }> {
  await run(process.execPath, [join(ROOT, 'scripts/build-packages.ts'), folder, '--python']);
  const [wheel = '', sources = ''] = ['*.whl', '*.tar.gz'].flatMap((name) => globSync(join(folder, name)));
  return { wheel, sources };
}

/** A virtual environment with the wheel and nothing else but its dependencies, installed without a network; returns its Python. */
export async function installWheel(folder: string, wheel: string, versions: Versions): Promise<string> {
  await run(PYTHON, ['-m', 'venv', '--without-pip', folder]);
  const python = join(folder, 'bin/python');
  const places = versions === 'types' ? ['newest', 'types'] : [versions];
  const links = places.flatMap((name) => ['--find-links', join(DOWNLOADS, name)]);
  const packages = versions === 'types' ? [wheel, 'mypy'] : [wheel];
  const options = ['--quiet', '--no-index', '--no-compile', '--disable-pip-version-check', ...links];
  await run(PYTHON, ['-m', 'pip', '--python', python, 'install', ...options, ...packages]);
  return python;
}
