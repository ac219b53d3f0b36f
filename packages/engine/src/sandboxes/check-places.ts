import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import type { Advisory } from '../runtime/advisories.ts';
import type { RuntimeMount } from '../runtime/runtime.ts';
import { resolveInside } from './resolve-inside.ts';

/** Where runtimes mount the kernel's file systems and devices, and where we mount our own. */
const SYSTEM_FOLDERS: readonly string[] = ['/proc', '/sys', '/dev', '/.svc'];

/**
 * Refuses a root file system in which a link leads what is mounted astray: the kernel's folders to somewhere else, or a caller's mount
 * onto one of them. Runtimes mount /dev first and later write there, mask files with its null device, and send what they configure
 * through /proc; a volume in its place would be under the control of other sandboxes that have it
 * (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881).
 * SAFETY: nothing runs in the root file system yet, but what lies below a volume or a folder of the host can be changed by those who
 * have it too: such places are returned, for `checkLanded`.
 */
export async function checkPlaces(
  rootfs: string,
  mounts: readonly RuntimeMount[],
): Promise<readonly string[]> {
  const shared: string[] = [];
  const covered: Cover[] = [];
  const placeOf = (inside: readonly string[]) => placeUnder(covered, rootfs, `/${inside.join('/')}`);
  await Promise.all(SYSTEM_FOLDERS.map((path) => requireNoLink(rootfs, path)));
  for (const { destination, source } of mounts) {
    const path = await resolved(destination, placeOf);
    const system = SYSTEM_FOLDERS.find((each) => path === each || path.startsWith(`${each}/`));
    if (system !== undefined || path === '/') {
      throw refused(`mounts: ${destination} is a link that leads to ${path}, which cannot be mounted over`);
    }
    if (coverOf(covered, path)?.source) shared.push(path);
    covered.push({ path, source });
  }
  return shared;
}

async function requireNoLink(rootfs: string, path: string): Promise<void> {
  const found = await lstat(join(rootfs, path)).catch(() => undefined);
  if (found?.isSymbolicLink()) throw refused(`its image makes ${path} a link; it must be a folder`);
}

/**
 * Refuses a sandbox in which a mount is not where `checkPlaces` saw its place: a folder was replaced by a link meanwhile.
 * SAFETY: to be called when the runtime has mounted everything and no process of the guest runs.
 */
export async function checkLanded(processIds: readonly number[], places: readonly string[]): Promise<void> {
  const tables = await Promise.all(
    processIds.map((pid) => mountPoints(pid).catch((): readonly string[] => [])),
  );
  for (const place of places) {
    if (tables.some((points) => points.includes(place))) continue;
    throw refused(
      `mounts: what is to be at ${place} landed elsewhere; a folder above it was changed meanwhile`,
    );
  }
}

/** The mount points of a sandbox's first process; none for others, which may be programs of the runtime. */
async function mountPoints(pid: number): Promise<readonly string[]> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  if (!/^NSpid:.*\t1$/m.test(status)) return [];
  const table = await readFile(`/proc/${pid}/mountinfo`, 'utf8');
  return table.split('\n').map((line) => unescaped(line.split(' ')[4] ?? ''));
}

/** The kernel writes blanks, line ends and backslashes as three octal digits. */
function unescaped(path: string): string {
  return path.replaceAll(/\\(\d{3})/g, (_, digits: string) =>
    String.fromCodePoint(Number.parseInt(digits, 8)),
  );
}

/** Refuses places that others can change for a runtime that is known to make folders and mount elsewhere then. */
export function refuseSharedPlaces(places: readonly string[], lacking: readonly Advisory[]): void {
  const [place] = places;
  if (place === undefined || lacking.length === 0) return;
  const ids = lacking.map(({ id }) => id).join(', ');
  throw refused(
    `mounts: ${place} lies below a volume or folder that others can change meanwhile, and the runtime of this host lacks the fixes ` +
      `of ${ids}; mount it elsewhere, or have the operator run \`make runc\``,
  );
}

interface Cover {
  readonly path: string;
  readonly source: string | null;
}

/** Where a path of the guest lies on the host, when the mounts before it are in their places; a new tmpfs is empty. */
function placeUnder(covered: readonly Cover[], rootfs: string, path: string): string {
  const cover = coverOf(covered, path);
  if (cover === undefined) return join(rootfs, path);
  return join(cover.source ?? '/nonexistent', path.slice(cover.path.length));
}

function coverOf(covered: readonly Cover[], path: string): Cover | undefined {
  return covered.findLast((each) => path === each.path || path.startsWith(`${each.path}/`));
}

async function resolved(path: string, placeOf: (inside: readonly string[]) => string): Promise<string> {
  const found = await resolveInside(path, placeOf);
  if (found === null) throw refused(`${path} is a link without an end`);
  return `/${found.inside.join('/')}`;
}

function refused(reason: string): PlatformError {
  return new PlatformError('start_failed', `the sandbox cannot be started: ${reason}`);
}
