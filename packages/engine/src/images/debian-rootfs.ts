import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onAbort } from '@svc/contract/async';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { readAptSetup } from './apt-sources.ts';

export interface DebianRootfsOptions {
  readonly onMessage: (message: string) => void;
  /** HTTP_PROXY and the like; no other variable of this process's environment reaches the tools. */
  readonly environment: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * Documentation, a third of the packages' content. Removed afterwards, because excluding it with mmdebstrap takes longer than the rest of
 * the build.
 */
const LEFT_OUT = ['man', 'info', 'locale', 'lintian', 'bug'].map((name) => `usr/share/${name}`);
/** Files with the host's name, mirrors and proxies, which a sandbox must not see. */
const PRIVATE = [
  'etc/apt',
  'etc/hostname',
  'etc/resolv.conf',
  'var/lib/dpkg',
  'var/lib/apt',
  'var/cache/apt',
];
const STEPS: Readonly<Record<string, string>> = {
  'running apt-get update...': 'reading package lists',
  'downloading packages with apt...': 'downloading packages',
  'extracting archives...': 'unpacking packages',
};
const MERGED_USR_HOOK = '/usr/share/mmdebstrap/hooks/merged-usr';
const GRACE_MS = 5000;

/** Unpacks Debian packages and their dependencies into the new folder `root` of `workFolder`. No package script runs. */
export async function unpackDebian(
  packages: readonly string[],
  workFolder: string,
  options: DebianRootfsOptions,
): Promise<string> {
  const { suite, sources, options: aptOptions } = await readAptSetup();
  const root = join(workFolder, 'root');
  const temporary = join(workFolder, 'tmp');
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  // Files, not arguments: the address of a mirror or proxy may contain a password.
  await writeFile(join(workFolder, 'debian.sources'), sources, { mode: 0o600 });
  await writeFile(join(workFolder, 'apt.conf'), aptOptions, { mode: 0o600 });
  const args = [
    '--mode=root',
    '--variant=extract',
    '--format=directory',
    `--hook-dir=${MERGED_USR_HOOK}`,
    `--aptopt=${join(workFolder, 'apt.conf')}`,
    `--include=${packages.join(',')}`,
    suite,
    root,
    join(workFolder, 'debian.sources'),
  ];
  await runMmdebstrap(args, { ...options, environment: { ...options.environment, TMPDIR: temporary } });
  for (const path of [...PRIVATE, ...LEFT_OUT]) await rm(join(root, path), { recursive: true, force: true });
  await keepLicencesOnly(join(root, 'usr/share/doc'));
  return root;
}

async function keepLicencesOnly(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const isKept = entry.isDirectory() || entry.name === 'copyright';
    if (!isKept) await rm(join(entry.parentPath, entry.name), { force: true });
  }
}

async function runMmdebstrap(args: readonly string[], options: DebianRootfsOptions): Promise<void> {
  options.signal.throwIfAborted();
  // SAFETY: no shell; packages are constants of ours. Its own process group, so that all its children can be stopped.
  const child = spawn('mmdebstrap', args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', ...options.environment },
    detached: true,
  });
  const errors: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    const step = STEPS[line.replace('I: ', '')];
    if (step !== undefined) options.onMessage(step);
    if (line.startsWith('E: ') || line.startsWith('Err:')) errors.push(withoutPasswords(line));
  });
  const stopListening = onAbort(options.signal, () => stopGroup(child.pid));
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    options.signal.throwIfAborted();
    if (code !== 0) throw buildFailure(errors);
  } catch (error) {
    throw asMissingTool(error);
  } finally {
    stopListening();
  }
}

/** Sends SIGTERM, on which mmdebstrap cleans up, and later SIGKILL. */
function stopGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  const send = (signal: NodeJS.Signals) => {
    try {
      process.kill(-pid, signal);
    } catch {
      // The group has ended already.
    }
  };
  send('SIGTERM');
  setTimeout(() => send('SIGKILL'), GRACE_MS).unref();
}

function withoutPasswords(line: string): string {
  return line.replaceAll(/\/\/[^/@\s]*@/g, '//').slice(0, 300);
}

function buildFailure(errors: readonly string[]): PlatformError {
  const all = errors.join('\n');
  const isOffline =
    /Could not resolve|Could not connect|Failed to fetch|Unable to connect|Temporary failure/i.test(all);
  const reason = isOffline
    ? 'the Debian mirrors of this host cannot be reached; check the network and the apt sources'
    : (errors[0] ?? 'mmdebstrap gave no reason');
  return new PlatformError('image_pull_failed', `The demo image could not be built: ${reason}`, {
    details: { errors: errors.slice(0, 5) },
  });
}

function asMissingTool(error: unknown): unknown {
  if (!isErrno(error, 'ENOENT')) return error;
  return new PlatformError(
    'unavailable',
    'mmdebstrap is missing on this host; run `svc doctor` to see how to install it',
    {
      cause: error,
    },
  );
}
