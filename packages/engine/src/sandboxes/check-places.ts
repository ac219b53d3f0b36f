import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import type { RuntimeMount } from '../runtime/runtime.ts';
import { resolveInside } from './resolve-inside.ts';

/** Where runtimes mount the kernel's file systems and devices, and where we mount our own. */
const SYSTEM_FOLDERS: readonly string[] = ['/proc', '/sys', '/dev', '/.svc'];

/**
 * Refuses a root file system in which a link leads what is mounted astray: the kernel's folders to somewhere else, or a caller's mount
 * onto one of them. Runtimes mount /dev first and later write there, mask files with its null device, and send what they configure
 * through /proc; a volume in its place would be under the control of other sandboxes that have it
 * (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881).
 * SAFETY: nothing runs in the root file system yet. What happens in a volume that others have mounted is the runtime's to withstand.
 */
export async function checkPlaces(rootfs: string, mounts: readonly RuntimeMount[]): Promise<void> {
  const covered: { readonly path: string; readonly source: string | null }[] = [];
  const placeOf = (inside: readonly string[]) => placeUnder(covered, rootfs, `/${inside.join('/')}`);
  for (const path of SYSTEM_FOLDERS) {
    const found = await resolved(path, placeOf);
    if (found !== path) throw refused(`its image makes ${path} a link; it must be a folder`);
  }
  for (const { destination, source } of mounts) {
    const path = await resolved(destination, placeOf);
    const system = SYSTEM_FOLDERS.find((each) => path === each || path.startsWith(`${each}/`));
    if (system !== undefined || path === '/') {
      throw refused(`mounts: ${destination} is a link that leads to ${path}, which cannot be mounted over`);
    }
    covered.push({ path, source });
  }
}

/** Where a path of the guest lies on the host, when the mounts before it are in their places; a new tmpfs is empty. */
function placeUnder(
  covered: readonly { readonly path: string; readonly source: string | null }[],
  rootfs: string,
  path: string,
): string {
  const cover = covered.findLast((each) => path === each.path || path.startsWith(`${each.path}/`));
  if (cover === undefined) return join(rootfs, path);
  return join(cover.source ?? '/nonexistent', path.slice(cover.path.length));
}

async function resolved(path: string, placeOf: (inside: readonly string[]) => string): Promise<string> {
  const found = await resolveInside(path, placeOf);
  if (found === null) throw refused(`${path} is a link without an end`);
  return `/${found.inside.join('/')}`;
}

function refused(reason: string): PlatformError {
  return new PlatformError('start_failed', `the sandbox cannot be started: ${reason}`);
}
