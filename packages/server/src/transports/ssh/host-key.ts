import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import ssh2 from 'ssh2';
import { createPrivateFile } from '../../host/private-file.ts';
import { StartError } from '../../host/start-error.ts';
import { EXIT } from '../../host/exit-codes.ts';
import { makeEd25519Pair } from './ed25519-pair.ts';
import { fingerprintOf } from '../../access/ssh-public-key.ts';

const FILE_NAME = 'ssh_host_ed25519_key';

export interface HostKey {
  /** In OpenSSH's format. */
  readonly privateKey: string;
  /** `<type> <base64>`, as in known_hosts files. */
  readonly publicKey: string;
  readonly fingerprint: string;
}

/** The host key of this server. Created on first use; two processes may do so at the same time. */
export async function ensureHostKey(serverFolder: string): Promise<HostKey> {
  // SAFETY: a fixed name in the server's own folder, in which only the server's user and root can write.
  const path = join(serverFolder, FILE_NAME);
  const existing = await read(path);
  if (existing !== undefined) return existing;
  // Mode 0600; keeps a file that another process has created meanwhile.
  await createPrivateFile(path, Buffer.from(makeEd25519Pair().privateKey));
  const made = await read(path);
  if (made === undefined) throw new Error('the SSH host key vanished while it was made');
  return made;
}

async function read(path: string): Promise<HostKey | undefined> {
  let privateKey: string;
  try {
    privateKey = await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  const key = ssh2.utils.parseKey(privateKey);
  if (key instanceof Error) {
    const hint = `${path} is not an SSH host key; remove it, and a new one is made`;
    throw new StartError(EXIT.failed, hint);
  }
  const blob = key.getPublicSSH();
  return {
    privateKey,
    publicKey: `${key.type} ${blob.toString('base64')}`,
    fingerprint: fingerprintOf(blob),
  };
}
