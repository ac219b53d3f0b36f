import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waitUntil } from '@svc/contract/testing';
import { pino } from 'pino';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';
import type { SvcHostCalls } from '../host/svc-host-calls.ts';
import { makeTestHost } from './test-host.ts';
import type { Slot } from '../network/network.ts';
import { HostSpace } from '../space/host-space.ts';
import { LiveDisks } from '../rootfs/live-disk.ts';
import { OverlayRootfs } from '../rootfs/overlay-rootfs.ts';
import type { RootfsSuiteHost } from '../rootfs/rootfs.suite.ts';

export interface RealHost extends RootfsSuiteHost {
  readonly hostCalls: SvcHostCalls;
  readonly folder: string;
  /** Copies disks of `folder` while they are mounted. */
  liveDisks(): LiveDisks;
  open(options?: {
    readonly reserveMib?: number;
    readonly readyDisks?: number;
    readonly hostCalls?: SvcHostCalls;
  }): OverlayRootfs;
  /** Runs a shell script as root of the slot's user namespace; `$1…` are `args`. */
  asGuest(slot: Slot, script: string, args: readonly string[], input?: string | Uint8Array): Promise<string>;
  /** The same as root of the host. */
  asHost(script: string, args: readonly string[]): Promise<string>;
  /** Mount points of disks. */
  mounts(): Promise<readonly string[]>;
}

/** A folder of this machine with real namespaces, mounts and loop devices; disposing of it removes every trace. */
export async function makeRealHost({ isOlderKernel = false } = {}): Promise<RealHost> {
  await using undo = new AsyncDisposableStack();
  const host = undo.use(await makeTestHost());
  const hostCalls = isOlderKernel ? host.withBinary(await olderHelper(host.folder)) : host.calls;
  const scratch = host.folder;
  const folder = join(scratch, 'rootfs');
  const slots: [Slot, Slot] = [slot(scratch, 'one', 1_000_000_000), slot(scratch, 'two', 1_000_065_536)];
  for (const { userNamespace, networkNamespace, idBase } of slots) {
    await hostCalls.createNamespaces({
      userPath: userNamespace,
      networkPath: networkNamespace,
      idBase,
      link: null,
    });
  }
  const inside = (handle: string, path: string) => join(folder, 'mounts', handle, 'root', path);
  const mounts = async () => (await host.mounts()).filter((path) => path.startsWith(`${folder}/`));
  const disposal = undo.move();
  return {
    scratch,
    slots,
    folder,
    hostCalls,
    asGuest,
    asHost: (script, args) => run('sh', ['-c', script, 'host', ...args], ''),
    mounts,
    liveDisks: () => new LiveDisks(folder, hostCalls),
    open: (options = {}) =>
      new OverlayRootfs({
        folder,
        mountFolder: folder,
        hostCalls: options.hostCalls ?? hostCalls,
        liveDisks: new LiveDisks(folder, hostCalls),
        defaultSizeMib: 16,
        readyDisks: options.readyDisks ?? 0,
        logger: pino({ level: 'silent' }),
        space: new HostSpace({
          folder: scratch,
          reserveBytes: (options.reserveMib ?? 1) * 2 ** 20,
          logger: pino({ level: 'silent' }),
        }),
      }),
    write: async (handle, slot, path, content) => {
      await asGuest(slot, 'cat > "$1"', [inside(handle, path)], content);
    },
    read: (handle, slot, path) => asGuest(slot, 'cat "$1"', [inside(handle, path)]),
    remove: async (handle, slot, path) => {
      await asGuest(slot, 'rm "$1"', [inside(handle, path)]);
    },
    leftovers: async () => {
      // A process of this machine that copies its mount namespace at this moment may hold a device a little longer.
      await waitUntil(async () => (await loopDevices(folder)).length <= (await mounts()).length);
      return [...(await files(folder)), ...(await mounts()), ...(await loopDevices(folder))];
    },
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

/** svc-host as it behaves on kernels that do not accept overlay layers as descriptors. */
async function olderHelper(scratch: string): Promise<string> {
  const path = join(scratch, 'svc-host');
  await writeFile(path, `#!/bin/sh\nexec '${BUILT_SVC_HOST}' --overlay-by-names\n`, { mode: 0o755 });
  return path;
}

function slot(scratch: string, key: string, idBase: number): Slot {
  const namespace = (kind: string) => join(scratch, `${key}.${kind}`);
  return { key, userNamespace: namespace('user'), networkNamespace: namespace('net'), idBase, link: null };
}

async function asGuest(
  { userNamespace }: Slot,
  script: string,
  args: readonly string[],
  input: string | Uint8Array = '',
): Promise<string> {
  const guest = [`--user=${userNamespace}`, '-S', '0', '-G', '0', 'sh', '-c', script, 'guest', ...args];
  return run('nsenter', guest, input);
}

async function run(file: string, args: readonly string[], input: string | Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(file, args, { timeout: 100_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${stderr}${stdout}`, { cause: error }));
    });
    // A guest that fails stops reading; its exit code is reported.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

async function files(folder: string): Promise<readonly string[]> {
  const kinds = ['disks', 'mounts', 'stages'].map(async (kind) => {
    const names = await readdir(join(folder, kind));
    return names.map((name) => `${kind}/${name}`);
  });
  return (await Promise.all(kinds)).flat();
}

/** Loop devices whose backing file is, or was, below `folder`. */
export async function loopDevices(folder: string): Promise<readonly string[]> {
  const names = (await readdir('/sys/block')).filter((name) => name.startsWith('loop'));
  const backing = await Promise.all(
    names.map(async (name) => readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => '')),
  );
  return backing.filter((file) => file.startsWith(`${folder}/`));
}
