import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Slot } from '../network/network.ts';
import { FakeRootfs } from './fake-rootfs.ts';
import { rootfsSuite } from '../rootfs/rootfs.suite.ts';
import type { RootfsSuiteHost } from '../rootfs/rootfs.suite.ts';

rootfsSuite('fake', makeHost);

async function makeHost(): Promise<RootfsSuiteHost> {
  const scratch = await mkdtemp(join(tmpdir(), 'svc-fake-rootfs-'));
  const folder = join(scratch, 'rootfs');
  const fake = new FakeRootfs(folder);
  return {
    scratch,
    slots: [slot('one', 100_000), slot('two', 200_000)],
    open: () => new FakeRootfs(folder),
    write: (handle, _slot, path, content) => fake.writeAsGuest(handle, path, content),
    read: (handle, _slot, path) => readFile(join(folder, 'mounts', handle, path), 'utf8'),
    remove: (handle, _slot, path) => rm(join(folder, 'mounts', handle, path)),
    leftovers: () => fake.leftovers(),
    [Symbol.asyncDispose]: () => rm(scratch, { recursive: true }),
  };
}

function slot(key: string, idBase: number): Slot {
  return { key, userNamespace: `/${key}/user`, networkNamespace: `/${key}/net`, idBase, link: null };
}
