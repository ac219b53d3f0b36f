import { chown, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { HostCalls } from '../host/host-calls.ts';
import { formatDisk } from '../rootfs/format-disk.ts';
import { nearestFolder } from './nearest-folder.ts';
import { PROBE_ID_BASE } from './probe-runtimes.ts';

const DISK_MIB = 16;

interface Means {
  readonly hostCalls: HostCalls;
  readonly folder: string;
  readonly config: { readonly dataFolder: string };
}

/**
 * Mounts one layer with mapped ids, as every sandbox does, and checks the owner of a file in it. The layer is placed where images are, and
 * the upper on a disk: whether ids can be mapped depends on the file system. A tmpfs before Linux 6.3 cannot.
 */
export async function tryOverlay({ hostCalls, folder, config }: Means): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const at = (name: string) => join(folder, 'overlay', name);
  for (const name of ['content/u', 'content/w', 'disk', 'target']) await mkdir(at(name), { recursive: true });
  const layer = await mkdtemp(join(await nearestFolder(config.dataFolder), '.svc-doctor-'));
  undo.defer(() => rm(layer, { recursive: true, force: true }));
  await writeFile(join(layer, 'file'), '');
  await chown(join(layer, 'file'), 0, 0);
  undo.defer(() => hostCalls.removeNamespaces(at('user'), at('network')));
  await hostCalls.createNamespaces({
    userPath: at('user'),
    networkPath: at('network'),
    idBase: PROBE_ID_BASE,
    link: null,
  });
  await formatDisk(at('image'), at('content'), DISK_MIB);
  undo.defer(() => hostCalls.unmount(at('disk')));
  await hostCalls.mountImage({ image: at('image'), target: at('disk'), fstype: 'ext4', readonly: false });
  undo.defer(() => hostCalls.unmount(at('target')));
  await hostCalls.mountOverlay({
    target: at('target'),
    layers: [layer],
    upper: at('disk/u'),
    work: at('disk/w'),
    userPath: at('user'),
    idBase: PROBE_ID_BASE,
  });
  const { uid } = await stat(at('target/file'));
  if (uid !== PROBE_ID_BASE) throw new Error(`a file of root appears as ${uid}, not as ${PROBE_ID_BASE}`);
}
