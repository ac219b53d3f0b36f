import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { missingControllers } from '../cgroup/cgroup-layout.ts';
import type { CgroupLayout } from '../cgroup/cgroup-layout.ts';
import { readPreamble } from '../guest/preamble.ts';
import type { HostCalls } from '../host/host-calls.ts';
import { RUNTIME_ENVIRONMENT } from './launch.ts';
import type { Runtime, RuntimeProbe, RuntimeSpec } from './runtime.ts';

/** The resources that a probe needs to start a sandbox for real. */
export interface ProbeMeans {
  readonly hostCalls: Pick<HostCalls, 'createNamespaces' | 'removeNamespaces'>;
  /** The program svc-init. */
  readonly initProgram: string;
  /** The probe's working folder; all parent folders must allow traversal (mode o+x). */
  readonly folder: string;
  /** Host id of the probe's root; 65,536 ids follow it. */
  readonly idBase: number;
}

type ProbedRuntime = Pick<Runtime, 'name' | 'start' | 'isAlive' | 'remove' | 'list'>;

/** Starts an empty sandbox and waits until its PID 1 reports. */
export async function probeRuntime(
  runtime: ProbedRuntime,
  program: string,
  layout: CgroupLayout,
  means: ProbeMeans,
  signal: AbortSignal,
): Promise<RuntimeProbe> {
  const version = await programVersion(program, signal);
  const named = version === null ? runtime.name : `${runtime.name} ${version}`;
  const released = version === null ? null : releaseDate(version);
  try {
    await startForReal(runtime, means, signal);
  } catch (error) {
    if (isTimeout(error)) {
      const reason = `${named} did not start an empty sandbox in time; this machine is very busy or very slow`;
      return { usable: false, reason, version, released };
    }
    const reason =
      version === null ? `${program} cannot be executed; install ${runtime.name}` : messageOf(error);
    return { usable: false, reason, version, released };
  }
  const missing = missingControllers(layout);
  const gap = `; this host lacks the cgroup controllers ${missing.join(', ')}: those limits do not hold`;
  return {
    usable: true,
    reason: `${named}${missing.length === 0 ? '' : gap}`,
    version,
    released,
  };
}

/** The version in the first line of `--version`: "runc version 1.1.5+ds1". Null when there is none, or on a timeout. */
async function programVersion(program: string, signal: AbortSignal): Promise<string | null> {
  try {
    // SAFETY: the program is the operator's choice, without a shell.
    const options = { signal, timeout: 10_000, env: RUNTIME_ENVIRONMENT };
    const { stdout } = await promisify(execFile)(program, ['--version'], options);
    return /version (\S+)/.exec(stdout)?.[1] ?? null;
  } catch {
    return null;
  }
}

/** Versions of runsc contain their date: "0.0~20240729.0", "release-20240729.0". */
export function releaseDate(version: string): Date | null {
  const match = /(?:^|\D)(20\d\d)(\d\d)(\d\d)(?:\D|$)/.exec(version);
  if (match === null) return null;
  const date = new Date(`${match[1]}-${match[2]}-${match[3]}T00:00:00Z`);
  return Number.isNaN(date.getTime()) ? null : date;
}

async function startForReal(runtime: ProbedRuntime, means: ProbeMeans, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await using undo = new AsyncDisposableStack();
  const folder = join(means.folder, `probe-${runtime.name}`);
  await clearAway(runtime, means, folder);
  undo.defer(() => clearAway(runtime, means, folder));
  const spec = await probeSpec(folder, means);
  await means.hostCalls.createNamespaces({
    userPath: spec.slot.userNamespace,
    networkPath: spec.slot.networkNamespace,
    idBase: means.idBase,
    link: null,
  });

  const server = undo.use(createServer());
  await listen(server, join(spec.guestFolder, 'engine.sock'));
  const dialed: Socket[] = [];
  server.on('connection', (socket) => dialed.push(socket));
  undo.defer(() => dialed.forEach((socket) => socket.destroy()));
  await runtime.start(spec, signal);
  undo.defer(() => runtime.remove(spec.handle));
  while (dialed[0] === undefined) {
    signal.throwIfAborted();
    if (!(await runtime.isAlive(spec.handle)))
      throw new Error(`${runtime.name}: PID 1 ended before it reported`);
    await setTimeout(DIAL_POLL_MS);
  }
  const { token } = await readPreamble(dialed[0]);
  if (token.toString('hex') !== spec.initToken) throw new Error('the sandbox reported with a wrong token');
}

const DIAL_POLL_MS = 5;
const HANDLE_PREFIX = 'probe-';

/** Also removes leftovers of a probe whose engine was killed. */
async function clearAway(runtime: ProbedRuntime, means: ProbeMeans, folder: string): Promise<void> {
  const handles = await runtime.list();
  for (const handle of handles) if (handle.startsWith(HANDLE_PREFIX)) await runtime.remove(handle);
  await means.hostCalls.removeNamespaces(join(folder, 'user'), join(folder, 'network'));
  await rm(folder, { recursive: true, force: true });
}

async function listen(server: Server, path: string): Promise<void> {
  server.listen(path);
  await once(server, 'listening');
  // SAFETY: root of the sandbox is another host user; other processes that dial it lack the token.
  await chmod(path, 0o666);
}

async function probeSpec(folder: string, means: ProbeMeans): Promise<RuntimeSpec> {
  const path = (name: string) => join(folder, name);
  await mkdir(folder, { recursive: true, mode: 0o711 });
  await Promise.all([mkdir(path('rootfs')), mkdir(path('guest'))]);
  const files = ['meminfo', 'cpuinfo', 'cpu-online'];
  await Promise.all([
    chown(path('rootfs'), means.idBase, means.idBase),
    copyFile(means.initProgram, path('guest/init')),
    ...files.map((name) => writeFile(path(name), '')),
  ]);
  await chmod(path('guest/init'), 0o755);
  return {
    handle: `${HANDLE_PREFIX}${randomBytes(8).toString('hex')}`,
    rootfs: path('rootfs'),
    hostname: 'probe',
    guestFolder: path('guest'),
    initToken: randomBytes(32).toString('hex'),
    profile: 'default',
    slot: {
      key: 'probe',
      userNamespace: path('user'),
      networkNamespace: path('network'),
      idBase: means.idBase,
      link: null,
    },
    vcpus: 1,
    memoryMib: 128,
    maxProcesses: 64,
    cgroupParent: null,
    rlimits: [],
    mounts: [],
    procFiles: { meminfo: path('meminfo'), cpuinfo: path('cpuinfo'), cpuOnline: path('cpu-online') },
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}

function messageOf(error: unknown): string {
  // The original error is more useful than the one of the cleanup.
  if (error instanceof SuppressedError) return messageOf(error.suppressed);
  return error instanceof Error ? error.message : String(error);
}
