import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PlatformError } from '@svc/contract/errors';

const run = promisify(execFile);

export interface AptSetup {
  /** `bookworm` */
  readonly suite: string;
  /** In the deb822 format of sources.list(5). */
  readonly sources: string;
  /** In the format of apt.conf(5). */
  readonly options: string;
}

/** Reads how this host gets Debian packages: the sources of its own release, without third-party ones, and its proxies. */
export async function readAptSetup(folder = '/etc/apt', osRelease = '/etc/os-release'): Promise<AptSetup> {
  const suite = /^VERSION_CODENAME="?([a-z]+)"?$/m.exec(
    await readFile(osRelease, 'utf8').catch(() => ''),
  )?.[1];
  if (suite === undefined) throw noSources('this host does not say which release of Debian it runs');
  const stanzas: string[] = [];
  for (const path of await sourceFiles(folder)) {
    const text = await readFile(path, 'utf8');
    stanzas.push(...(path.endsWith('.sources') ? text.split(/\n\s*\n/) : oneLineStanzas(text)));
  }
  const own = stanzas.filter((stanza) => isOfSuite(stanza, suite));
  if (own.length === 0) throw noSources(`the apt sources of this host do not list ${suite}`);
  return { suite, sources: `${own.join('\n\n')}\n`, options: await acquireOptions() };
}

async function sourceFiles(folder: string): Promise<string[]> {
  const names = await readdir(join(folder, 'sources.list.d')).catch(() => []);
  const parts = names.filter((name) => /\.(?:sources|list)$/.test(name)).sort();
  const main = (await readdir(folder).catch(() => [])).filter((name) => name === 'sources.list');
  return [
    ...main.map((name) => join(folder, name)),
    ...parts.map((name) => join(folder, 'sources.list.d', name)),
  ];
}

/** Converts `deb [signed-by=…] URI SUITE COMPONENT…` to a deb822 stanza. */
function oneLineStanzas(text: string): string[] {
  return text.split('\n').flatMap((line) => {
    const match = /^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/.exec(line.trim());
    if (match === null) return [];
    const [, options = '', uri, suite, components = ''] = match;
    const signedBy = /signed-by=(\S+)/i.exec(options)?.[1];
    const stanza = ['Types: deb', `URIs: ${uri}`, `Suites: ${suite}`, `Components: ${components.trim()}`];
    return [[...stanza, ...(signedBy === undefined ? [] : [`Signed-By: ${signedBy}`])].join('\n')];
  });
}

function isOfSuite(stanza: string, suite: string): boolean {
  const field = (name: string) =>
    new RegExp(`^${name}:(.*)$`, 'im').exec(stanza)?.[1]?.trim().split(/\s+/) ?? [];
  const suites = field('Suites');
  return (
    field('Types').includes('deb') &&
    !field('Enabled').includes('no') &&
    field('Components').includes('main') &&
    suites.length > 0 &&
    suites.every((name) => name === suite || name.startsWith(`${suite}-`))
  );
}

async function acquireOptions(): Promise<string> {
  const wanted = [
    'Acquire::http::Proxy',
    'Acquire::https::Proxy',
    'Acquire::Check-Valid-Until',
    'Acquire::Retries',
  ];
  // SAFETY: no shell, fixed arguments.
  const { stdout } = await run('apt-config', ['dump', '--no-empty', ...wanted]).catch((error: unknown) => {
    throw noSources('apt is missing', error);
  });
  return stdout;
}

function noSources(why: string, cause?: unknown): PlatformError {
  return new PlatformError(
    'unavailable',
    `Demo images are made from Debian packages, but ${why}; pull an image from a registry or import one instead`,
    { cause },
  );
}
