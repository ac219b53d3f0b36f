import { chown, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { HostCalls } from '../host/host-calls.ts';
import { PROBE_ID_BASE } from './probe-runtimes.ts';

interface Means {
  readonly hostCalls: HostCalls;
  readonly folder: string;
}

/** Shows one layer through a user namespace, as every sandbox does, and looks who owns a file in it. */
export async function tryOverlay({ hostCalls, folder }: Means): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const at = (name: string) => join(folder, 'overlay', name);
  await mkdir(at('layer'), { recursive: true });
  await Promise.all(['upper', 'work', 'target'].map((name) => mkdir(at(name))));
  await writeFile(at('layer/file'), '');
  await chown(at('layer/file'), 0, 0);
  undo.defer(() => hostCalls.removeNamespaces(at('user'), at('network')));
  await hostCalls.createNamespaces({
    userPath: at('user'),
    networkPath: at('network'),
    idBase: PROBE_ID_BASE,
    link: null,
  });
  undo.defer(() => hostCalls.unmount(at('target')));
  await hostCalls.mountOverlay({
    target: at('target'),
    layers: [at('layer')],
    upper: at('upper'),
    work: at('work'),
    userPath: at('user'),
    idBase: PROBE_ID_BASE,
  });
  const { uid } = await stat(at('target/file'));
  if (uid !== PROBE_ID_BASE) throw new Error(`a file of root appears as ${uid}, not as ${PROBE_ID_BASE}`);
}
