import { isAbsolute, join } from 'node:path';
import type { Mount } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { CheckSandbox } from '@svc/contract/orchestrator';
import { bindSource, type MountKit } from './prepare-mounts.ts';
import { resolveInside } from './resolve-inside.ts';
import { checkDiskImage, diskImageSource } from './stage-disk-image.ts';
import type { Source } from './stage-source.ts';

/**
 * Refuses mounts that this host cannot provide, naming them. The engine learns the volumes only at create; everything else can change until
 * the start, where the kernel checks it again.
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

/** SAFETY: the answer does not reveal files of the host outside of the root. The kernel checks again what changes in the meantime. */
async function isThere({ root, path }: Source): Promise<boolean> {
  const resolved = await resolveInside(path, (inside) => join(root, ...inside));
  return resolved !== null && resolved.isThere;
}

/** Rethrows a refusal with the name of the field that the caller sent. */
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
