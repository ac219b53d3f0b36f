import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const DEFAULT_PORT = 22;

export interface Gateway {
  readonly host: string;
  readonly port: number;
}

/**
 * Options that make `ssh` accept this host key and no other. The key is stored in a known_hosts file of our own, one for each
 * gateway. It came from the API, over a connection that is trusted with the credential, so the user need not confirm it.
 */
export async function pinHostKey(
  contextFolder: string,
  gateway: Gateway,
  hostKey: string,
): Promise<readonly string[]> {
  const folder = join(contextFolder, 'ssh');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // SAFETY: for any host the name has neither a slash nor a leading dot.
  const path = join(folder, `known_hosts-${encodeURIComponent(gateway.host)}-${gateway.port}`);
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, `${nameOf(gateway)} ${hostKey}\n`, { mode: 0o600 });
  await rename(draft, path);
  const [type = ''] = hostKey.split(' ');
  return Object.entries({
    // ssh splits this at spaces, which a home folder may have.
    UserKnownHostsFile: `"${path}"`,
    GlobalKnownHostsFile: '/dev/null',
    StrictHostKeyChecking: 'yes',
    HostKeyAlgorithms: type,
    UpdateHostKeys: 'no',
  }).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

/** The format of known_hosts files. */
function nameOf({ host, port }: Gateway): string {
  return port === DEFAULT_PORT ? host : `[${host}]:${port}`;
}
