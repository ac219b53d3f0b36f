import { accessSync, constants } from 'node:fs';
import { glob, readFile, stat, statfs } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';
import { allocatedBytesOf } from '../host/allocated-bytes.ts';
import { readCgroupLayout } from '../cgroup/cgroup-layout.ts';
import type { EngineConfig } from '../daemon/config.ts';
import { BUILT_ARCHIVE_PROGRAM } from '../images/archive-process.ts';
import { readDoctorConfig, searchPath } from './config.ts';
import type { HostFacts } from './host-facts.ts';
import { PROGRAMS } from './judge-programs.ts';
import { nearestFolder } from './nearest-folder.ts';
import { findDiskFault } from './find-disk-fault.ts';
import { tryOnHost } from './try-on-host.ts';

export async function readHostFacts(options: {
  readonly dataFolder: string;
  readonly isThorough: boolean;
}): Promise<HostFacts> {
  const config = readDoctorConfig(options.dataFolder);
  const isRoot = process.getuid?.() === 0;
  const memory = await readMemory();
  return {
    isRoot,
    kernelRelease: release(),
    cgroups: readCgroupLayout(),
    maxUserNamespaces: numberIn(await readText('/proc/sys/user/max_user_namespaces')),
    seccompActions: await readText('/proc/sys/kernel/seccomp/actions_avail'),
    ipForward: (await readText('/proc/sys/net/ipv4/ip_forward'))?.trim() === '1',
    programs: findPrograms(config),
    diskFault: await findDiskFault(await nearestFolder(config.dataFolder)),
    freeDiskBytes: await freeBytes(config.dataFolder),
    promisedDiskBytes: await promisedBytes(config.dataFolder),
    ...memory,
    ...(await tryOnHost(config, { isRoot, isThorough: options.isThorough })),
  };
}

async function readText(path: string): Promise<string | null> {
  return await readFile(path, 'utf8').catch(() => null);
}

function numberIn(text: string | null): number | null {
  return text === null ? null : Number(text);
}

async function readMemory(): Promise<{ totalMemoryBytes: number; availableMemoryBytes: number }> {
  const text = (await readText('/proc/meminfo')) ?? '';
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0);
  return { totalMemoryBytes: kib('MemTotal') * 1024, availableMemoryBytes: kib('MemAvailable') * 1024 };
}

function findPrograms(config: EngineConfig): Readonly<Record<string, string | null>> {
  const ours: Readonly<Record<string, string>> = {
    'svc-init': config.initProgram,
    'svc-host': config.hostProgram,
    'archive-program': BUILT_ARCHIVE_PROGRAM,
  };
  return Object.fromEntries(
    Object.keys(PROGRAMS).map((name) => [
      name,
      firstExecutable(name in ours ? [ours[name] ?? ''] : inPath(name)),
    ]),
  );
}

function inPath(name: string): readonly string[] {
  return searchPath().map((folder) => join(folder, name));
}

function firstExecutable(paths: readonly string[]): string | null {
  return paths.find((path) => isExecutable(path)) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Any failure means that it cannot be run.
    return false;
  }
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(await nearestFolder(folder));
  return bavail * bsize;
}

/** 0 when the folder cannot be read: it does not exist, or we are not root. */
async function promisedBytes(folder: string): Promise<number> {
  let promised = 0;
  for await (const image of glob(['rootfs/disks/*.img', 'volumes/*/image.ext4'], { cwd: folder })) {
    const found = await stat(join(folder, image)).catch(() => undefined);
    if (found !== undefined) promised += Math.max(0, found.size - allocatedBytesOf(found));
  }
  return promised;
}
