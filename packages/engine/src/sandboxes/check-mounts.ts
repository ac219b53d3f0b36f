import { lstat, readlink } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { Mount } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { CheckSandbox } from '../client/engine-api.ts';
import { bindSource, type MountKit } from './prepare-mounts.ts';
import { checkDiskImage, diskImageSource } from './stage-disk-image.ts';
import type { Source } from './stage-source.ts';

/**
 * Refuses mounts that this host cannot give, by name. Of volumes the engine is told at the create only; what else changes until the
 * start is judged again there, by the kernel.
 */
export async function checkMounts(
  kit: Pick<MountKit, 'bindRoots' | 'diskImageRoots'>,
  request: CheckSandbox,
): Promise<void> {
  const { spec, start } = request;
  const hostFolder = request.hostFolder ?? null;
  for (const [index, mount] of (spec.mounts ?? []).entries()) {
    const field = `mounts[${index}].host`;
    const source = inWordsOf(field, () => sourceOf(kit, mount, hostFolder));
    if (start === true && source !== undefined && !(await isThere(source)))
      throw refused(field, `${hostOf(mount)} does not exist inside its root; create it first`);
  }
  for (const [index, patch] of (spec.patches ?? []).entries()) {
    if ('src' in patch && isAbsolute(patch.src))
      inWordsOf(`patches[${index}].src`, () => bindSource(kit, patch.src, hostFolder));
  }
}

function sourceOf(
  kit: Pick<MountKit, 'bindRoots' | 'diskImageRoots'>,
  mount: Mount,
  hostFolder: string | null,
): Source | undefined {
  if (mount.type === 'disk_image') {
    checkDiskImage(mount);
    return diskImageSource(kit, mount.host, hostFolder);
  }
  return mount.type === 'bind' && isAbsolute(mount.host)
    ? bindSource(kit, mount.host, hostFolder)
    : undefined;
}

const MAX_LINKS = 40;

/**
 * As the kernel resolves it at the start: `..` ends at the root, and a link that begins with a slash begins there.
 * SAFETY: so nobody learns what the host has outside of it. What changes meanwhile is judged again by the kernel.
 */
async function isThere({ root, path }: Source): Promise<boolean> {
  let left = path.split('/');
  let inside: string[] = [];
  let links = 0;
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      inside.pop();
      continue;
    }
    const place = join(root, ...inside, name);
    const found = await lstat(place).catch(() => undefined);
    if (found === undefined) return false;
    if (!found.isSymbolicLink()) {
      inside.push(name);
      continue;
    }
    links += 1;
    const target = await readlink(place).catch(() => undefined);
    if (target === undefined || links > MAX_LINKS) return false;
    if (isAbsolute(target)) inside = [];
    left = [...target.split('/'), ...left];
  }
  return true;
}

/** The same refusal, by the name of the field that the caller sent. */
function inWordsOf<T>(field: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!PlatformError.is(error, 'invalid_sandbox_config')) throw error;
    throw refused(field, error.message.replace(/^mounts: /, ''), error);
  }
}

function refused(field: string, reason: string, cause?: unknown): PlatformError {
  return new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, {
    details: { field, reason },
    cause,
  });
}

function hostOf(mount: Mount): string {
  return 'host' in mount ? mount.host : '';
}
