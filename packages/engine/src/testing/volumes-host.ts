import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { pino } from 'pino';
import { SvcHostCalls } from '../host/svc-host-calls.ts';
import { HostSpace } from '../space/host-space.ts';
import { DiskVolumes } from '../volumes/disk-volumes.ts';
import type { DiskVolumesOptions } from '../volumes/disk-volumes.ts';
import { BUILT_SVC_INIT } from './local-init.ts';
import type { VolumesSuiteHost } from '../volumes/volumes.suite.ts';

const run = promisify(execFile);
const MIB = 1024 * 1024;

/** A folder of this machine with real images, mounts and loop devices; disposing of it removes every resource. */
export interface RealHost extends VolumesSuiteHost {
  /** Where the volumes are. */
  readonly folder: string;
  readonly hostCalls: SvcHostCalls;
  /** The space of this machine, for an engine that reserves that much of it. */
  space(reserveBytes: number): HostSpace;
  open(options?: Partial<DiskVolumesOptions>): DiskVolumes;
  /** Mount points and loop devices of these volumes. */
  inUse(): Promise<readonly string[]>;
  /** Runs a command of the host; resolves to its output. */
  run(file: string, ...args: readonly string[]): Promise<string>;
}

export async function makeRealHost(): Promise<RealHost> {
  const scratch = await mkdtemp(join(tmpdir(), 'svc-volumes-'));
  const folder = join(scratch, 'volumes');
  const secret = join(scratch, 'secret');
  await writeFile(secret, 'secret');
  const hostCalls = new SvcHostCalls({ processes: 1 });
  const opened: DiskVolumes[] = [];
  const logger = pino({ level: 'silent' });
  const space = (reserveBytes: number) => new HostSpace({ folder: scratch, reserveBytes, logger });
  return {
    secret,
    folder,
    hostCalls,
    space,
    open: (options = {}) => {
      const parts = { folder, hostCalls, initProgram: BUILT_SVC_INIT, space: space(MIB), logger };
      const volumes = new DiskVolumes({ ...parts, ...options });
      opened.push(volumes);
      return volumes;
    },
    inUse: async () => [...(await mountsBelow(folder)), ...(await loopDevices(folder))],
    run: async (file, ...args) => (await run(file, args, { timeout: 100_000 })).stdout,
    [Symbol.asyncDispose]: async () => {
      for (const volumes of opened) await volumes.close();
      for (const path of (await mountsBelow(folder)).toReversed()) await hostCalls.unmount(path);
      await hostCalls.close();
      await waitUntil(async () => (await loopDevices(folder)).length === 0);
      await rm(scratch, { recursive: true });
    },
  };
}

async function mountsBelow(folder: string): Promise<readonly string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8');
  const points = table.split('\n').flatMap((line) => line.split(' ')[4] ?? []);
  return points.filter((point) => point.startsWith(`${folder}/`));
}

/** Backing files below the folder that a loop device uses. */
async function loopDevices(folder: string): Promise<readonly string[]> {
  const names = (await readdir('/sys/block')).filter((name) => name.startsWith('loop'));
  const files = await Promise.all(
    names.map(async (name) => readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => '')),
  );
  return files.filter((file) => file.startsWith(`${folder}/`));
}
