import type { ChildProcessByStdio, ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import type { FileHandle } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { onAbort } from '@svc/contract/async';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';

export interface ConfinedCommand {
  readonly command: readonly [string, ...string[]];
  /** World-readable programs of the host that it may run, by their path inside. */
  readonly programs: readonly { readonly host: string; readonly inside: string }[];
  /** The only folders of the host it sees beside /usr, by their path inside. */
  readonly folders: readonly { readonly host: string; readonly inside: string; readonly writable: boolean }[];
  readonly workdir: string;
  /** Its capabilities as root of its own user namespace, which apply to the files of those folders; none applies to the host. */
  readonly capabilities: readonly Capability[];
  /** The user ids with which it reads and writes the folders: see `IDS`. */
  readonly ids: keyof typeof IDS;
  readonly network: ConfinedNetwork;
  readonly environment: Readonly<Record<string, string>>;
}

/** Bits as in linux/capability.h. */
const CAPABILITY_BITS = {
  CAP_CHOWN: 0,
  CAP_DAC_OVERRIDE: 1,
  CAP_DAC_READ_SEARCH: 2,
  CAP_FOWNER: 3,
  CAP_FSETID: 4,
} as const;
type Capability = keyof typeof CAPABILITY_BITS;

/**
 * - `own`: host ids without a user, below those of the sandboxes; folders are mounted with an id mapping, so that files the program stores
 *   as user 7 are stored as user 7. Their file system must support id mappings, as the data folder's does.
 * - `any`: the same with half of all ids, for folders with files of any owner. On a file system without id mappings whose folders are not
 *   ours to choose, the ids stay the host's.
 */
const IDS = { own: String(0x1000_0000 - 6 * 65_536), any: 'any' } as const;

/** The path of svc-host inside, which drops privileges and then executes the program. */
const CONFINER = '/.svc-host';

/** No network, the host's own, or a namespace with the file that names its resolver. */
export type ConfinedNetwork = 'none' | 'host' | { readonly namespace: string; readonly resolvConf: string };

/** Settings that name resolution and TLS need; none holds a secret of this host. */
const NETWORK_FILES = [
  '/etc/resolv.conf',
  '/etc/hosts',
  '/etc/nsswitch.conf',
  '/etc/ssl',
  '/etc/containers',
  '/etc/docker/certs.d',
];

/** It works for one organization; the engine serves all of them. */
const LOW_PRIORITY = ['nice', '-n', '10'];

/**
 * Starts a program that reads untrusted data, in a file system of its own: /usr read-only and the given folders, nothing else. It has no
 * privileges: a user namespace of its own, no capability outside of it, a seccomp filter (`host/src/confine`), and a network only if it is
 * given one. Its whole process tree ends with this process. Pass it to `outcomeOf`, which also ends it when the signal aborts.
 */
export function spawnConfined(request: ConfinedCommand): ChildProcessWithoutNullStreams {
  const [program, args, options] = confinedSpawn(request);
  return spawn(program, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
}

/** As `spawnConfined`, for a program that reads one file: it gets an open descriptor and does not see the file's folder. */
export function spawnConfinedOn(
  input: FileHandle,
  request: ConfinedCommand,
): ChildProcessByStdio<null, Readable, Readable> {
  const [program, args, options] = confinedSpawn(request);
  const child: unknown = spawn(program, args, { ...options, stdio: [input.fd, 'pipe', 'pipe'] });
  // Streams that are not pipes are null; Node's types express that only for literal arguments.
  return child as ChildProcessByStdio<null, Readable, Readable>;
}

type ConfinedProcess = ChildProcessByStdio<Writable | null, Readable, Readable>;

function confinedSpawn(request: ConfinedCommand) {
  // SAFETY: no shell; every argument is passed as it is. The environment holds only what is listed here, and file names inside are ours, so
  // no value of the image becomes an option. A process group of its own lets `outcomeOf` end all of it: bwrap's --die-with-parent works
  // only once the sandbox is set up.
  const [program, ...args] = [
    ...entrance(request.network),
    ...LOW_PRIORITY,
    'bwrap',
    ...confinement(request),
    '--',
  ];
  const options = {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', ...request.environment },
    detached: true,
  };
  return [program, [...args, ...renunciation(request), ...request.command], options] as const;
}

/** Waits until the program has ended, or ends it. `stderr` holds at most the last so many characters of its standard error. */
export async function outcomeOf(
  child: ConfinedProcess,
  signal: AbortSignal,
  stderrLength = 16 * 1024,
): Promise<{ readonly code: number; readonly stderr: string }> {
  const said: string[] = [];
  let length = 0;
  child.stderr.setEncoding('utf8');
  child.stderr.on('data', (text: string) => {
    said.push(text);
    length += text.length;
    while (length - (said[0]?.length ?? 0) >= stderrLength) length -= said.shift()?.length ?? 0;
  });
  const stopListening = onAbort(signal, () => killGroup(child));
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    signal.throwIfAborted();
    return { code: code ?? -1, stderr: said.join('').slice(-stderrLength) };
  } catch (error) {
    signal.throwIfAborted();
    throw spawnFailure(error);
  } finally {
    stopListening();
  }
}

/** Ends the program and all it started. */
export function killGroup(child: ConfinedProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The group has ended already.
  }
  // Readers of its output see the end at once instead of waiting for a program that has ended.
  child.stdin?.destroy();
  child.stdout.destroy();
}

/** The command prefix that enters the network; it executes the rest in place, so the process id stays the one to end. */
function entrance(network: ConfinedNetwork): string[] {
  return typeof network === 'object' ? ['nsenter', `--net=${network.namespace}`, '--'] : [];
}

/** The bubblewrap arguments that assemble the file system as root, before privileges are dropped. */
function confinement(request: ConfinedCommand): string[] {
  const args = [
    '--die-with-parent',
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup-try',
  ];
  if (request.network === 'none') args.push('--unshare-net');
  args.push('--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin', '--symlink', 'usr/lib', '/lib');
  args.push('--symlink', 'usr/lib64', '/lib64', '--proc', '/proc', '--dev', '/dev');
  args.push('--ro-bind', BUILT_SVC_HOST, CONFINER);
  if (request.network !== 'none') {
    // Made explicitly: parent folders that bubblewrap creates would be accessible to root only.
    args.push('--dir', '/etc', '--dir', '/etc/docker');
    args.push(...NETWORK_FILES.flatMap((path) => ['--ro-bind-try', path, path]));
  }
  if (typeof request.network === 'object')
    args.push('--ro-bind', request.network.resolvConf, '/etc/resolv.conf');
  for (const { host, inside } of request.programs) args.push('--ro-bind', host, inside);
  for (const { host, inside, writable } of request.folders) {
    args.push(writable ? '--bind' : '--ro-bind', host, inside);
  }
  args.push('--chdir', request.workdir);
  return args;
}

/** The svc-host arguments that drop privileges before the program is executed. */
function renunciation({ ids, capabilities, network, folders }: ConfinedCommand): string[] {
  const mask = capabilities.reduce((bits, name) => bits | (1 << CAPABILITY_BITS[name]), 0);
  const mayTalk = network === 'none' ? '0' : '1';
  const paths = folders.map(({ inside }) => inside);
  return [CONFINER, '--confine', IDS[ids], mask.toString(16), mayTalk, String(paths.length), ...paths];
}

function spawnFailure(error: unknown): unknown {
  const isMissing = isErrno(error, 'ENOENT');
  if (!isMissing) return error;
  return new PlatformError(
    'unavailable',
    'bubblewrap is missing on this host; run `svc doctor` to see how to install it',
    {
      cause: error,
    },
  );
}
