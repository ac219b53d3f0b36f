import { realpath } from 'node:fs/promises';
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

/** SAFETY: what lies outside its root is answered like what is nowhere, so that nobody learns what the host has. */
async function isThere({ root, path }: Source): Promise<boolean> {
  try {
    const [inside, found] = [await realpath(root), await realpath(join(root, path))];
    return found === inside || found.startsWith(`${inside}/`);
  } catch {
    // Missing, or a link that leads nowhere; the start says what else may be wrong with it.
    return false;
  }
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
