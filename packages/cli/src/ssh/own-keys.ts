import { execFile } from 'node:child_process';
import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const AGENT_TIMEOUT_MS = 2000;

export interface OwnKey {
  /** `<type> <base64> <comment>`. */
  readonly line: string;
  readonly publicPath: string;
}

/** The public keys in a folder like ~/.ssh, by their file names. */
export async function listOwnKeys(sshFolder: string): Promise<readonly OwnKey[]> {
  const names = (await readdir(sshFolder).catch(() => [])).filter((name) => name.endsWith('.pub')).toSorted();
  const keys = await Promise.all(
    names.map(async (name) => {
      // SAFETY: a name that the folder itself has given.
      const publicPath = join(sshFolder, name);
      const line = (await readFile(publicPath, 'utf8').catch(() => '')).trim();
      return { line, publicPath };
    }),
  );
  // Certificates end in .pub too, and are no keys.
  return keys.filter(({ line }) => /^(ssh|ecdsa)-\S+ \S+/.test(line) && !line.includes('-cert-v01@'));
}

/**
 * Options with which `ssh` offers one of these keys, or null when neither the folder nor the agent has one.
 * Keys are compared by type and content, without comments.
 */
export async function findIdentity(
  registered: readonly string[],
  sshFolder: string,
): Promise<readonly string[] | null> {
  const wanted = new Set(registered.map(withoutComment));
  for (const { line, publicPath } of await listOwnKeys(sshFolder)) {
    if (!wanted.has(withoutComment(line))) continue;
    const privatePath = publicPath.replace(/\.pub$/, '');
    if (await isThere(privatePath)) return ['-i', privatePath];
  }
  const held = await listAgentKeys();
  return held.some((line) => wanted.has(withoutComment(line))) ? [] : null;
}

async function listAgentKeys(): Promise<readonly string[]> {
  // SAFETY: no shell and no foreign arguments; it queries the agent that the user's environment names.
  const asked = promisify(execFile)('ssh-add', ['-L'], { timeout: AGENT_TIMEOUT_MS });
  return await asked.then(
    ({ stdout }) => stdout.split('\n'),
    // No agent, or no keys in it.
    () => [],
  );
}

function withoutComment(line: string): string {
  return line.trim().split(/\s+/).slice(0, 2).join(' ');
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
