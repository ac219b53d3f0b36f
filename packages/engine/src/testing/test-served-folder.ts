import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BindOwner, HostCalls } from '../host/host-calls.ts';
import type { TestHost } from './test-host.ts';

export const ID_BASE = 1_250_000_000;

export interface ServedFolder {
  /** The path on the host. */
  readonly host: string;
  /** The path in the guest. */
  readonly guest: string;
  readonly calls: HostCalls;
  /** Runs a script in the guest's folder. */
  sh(script: string, uid?: number): Promise<string>;
  used(): Promise<number>;
}

/** Owners and modes as on the host, with root inside. */
export const PLAIN_OWNER: BindOwner = {
  storedAs: 'folder',
  uid: 0,
  gid: 0,
  quotaMib: null,
  statVirtualization: 'off',
  hostPermissions: 'private',
};

/** A folder, or a volume, of a guest; root of the host owns it unless `ownedBy` is given. */
export async function served(
  host: TestHost,
  owner: Partial<BindOwner>,
  options: { ownedBy?: number; binary?: string } = {},
): Promise<ServedFolder> {
  const [folder, guest] = [join(host.folder, 'folder'), join(host.folder, 'guest')];
  mkdirSync(folder);
  writeFileSync(join(folder, 'before'), 'of the host\n');
  for (const path of [folder, join(folder, 'before')])
    chownSync(path, options.ownedBy ?? 0, options.ownedBy ?? 0);
  const [userPath, networkPath] = [join(host.folder, 'user'), join(host.folder, 'net')];
  const calls = options.binary === undefined ? host.calls : host.withBinary(options.binary);
  await calls.createNamespaces({ userPath, networkPath, idBase: ID_BASE, link: null });
  await calls.bind({
    root: folder,
    path: '.',
    target: guest,
    readonly: false,
    idmap: {
      userPath,
      idBase: ID_BASE,
      owner: { ...PLAIN_OWNER, ...owner },
    },
  });
  const enter = (uid: number) => [`--user=${userPath}`, '-S', String(uid), '-G', String(uid)];
  const sh = (script: string, uid = 0) =>
    host.run('nsenter', ...enter(uid), 'sh', '-c', `cd "$1" && { ${script}\n} 2>&1`, 'sh', guest);
  const used = async () => Number((await host.run('df', '--output=used', '-B1', guest)).split('\n')[1]);
  return { host: folder, guest, calls, sh, used };
}

export function isServed(host: TestHost): boolean {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .some((line) => line.includes(`${host.folder}/guest `) && line.includes(' - fuse '));
}
