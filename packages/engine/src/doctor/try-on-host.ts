import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Cgroups } from '../cgroup/cgroups.ts';
import type { EngineConfig } from '../daemon/config.ts';
import { prepareRunFolder } from '../daemon/run-folder.ts';
import { SvcHostCalls } from '../host/svc-host-calls.ts';
import type { HostFacts, Attempt } from './host-facts.ts';
import { probeRuntimes } from './probe-runtimes.ts';
import { tryKvm } from './try-kvm.ts';
import { tryOverlay } from './try-overlay.ts';
import type { HostCalls } from '../host/host-calls.ts';
import { formatDisk } from '../rootfs/format-disk.ts';

const SIZE_MIB = 16;

const RUN_FOLDER = '/run/svc';
const CALL_TIMEOUT_MS = 10_000;

type Tried = Pick<HostFacts, 'attempts' | 'runtimes'>;

/** Tries the features that only a try can prove, in a folder of its own like the engine's, and leaves nothing behind. */
export async function tryOnHost(
  config: EngineConfig,
  options: { readonly isRoot: boolean; readonly isThorough: boolean },
): Promise<Tried> {
  if (!options.isRoot) return untried();
  await using undo = new AsyncDisposableStack();
  const hostCalls = undo.adopt(
    new SvcHostCalls({ binary: config.hostProgram, callTimeoutMs: CALL_TIMEOUT_MS }),
    (calls) => calls.close(),
  );
  await mkdir(RUN_FOLDER, { recursive: true, mode: 0o711 });
  const folder = await mkdtemp(join(RUN_FOLDER, `doctor-${process.pid}-`));
  undo.defer(() => rm(folder, { recursive: true, force: true }));
  undo.defer(() => promisify(execFile)('umount', ['--lazy', folder]).then(() => undefined));
  await prepareRunFolder(folder);

  const means = { hostCalls, folder, config };
  const [runtimes, idmappedOverlay, diskImage, fuse, nftables, kvm] = await Promise.all([
    probeRuntimes({ ...means, cgroups: new Cgroups() }),
    attempt(() => tryOverlay(means)),
    attempt(() => tryDiskImage(means)),
    attempt(async () => await (await open('/dev/fuse', 'r+')).close()),
    // SAFETY: reads only.
    attempt(() => promisify(execFile)('nft', ['list', 'tables'], { timeout: CALL_TIMEOUT_MS })),
    tryKvm(config.runtimePaths.runsc, folder, options.isThorough),
  ]);
  return { runtimes, attempts: { idmappedOverlay, diskImage, fuse, nftables, kvm } };
}

function untried(): Tried {
  const skipped = { outcome: 'untried', reason: 'needs root to be tried' } as const;
  return {
    runtimes: [],
    attempts: {
      idmappedOverlay: skipped,
      diskImage: skipped,
      fuse: skipped,
      nftables: skipped,
      kvm: skipped,
    },
  };
}

/** A killed program has no last line, and its command alone explains nothing. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, killed, signal } = error as Error & { killed?: boolean; signal?: NodeJS.Signals | null };
  const reason = message.trim().split('\n').at(-1) ?? '';
  if (killed === true) return `${reason}: no answer in ${CALL_TIMEOUT_MS / 1000} s`;
  return typeof signal === 'string' ? `${reason}: ended by ${signal}` : reason;
}

/** Converts a try that throws into a finding. */
async function attempt(tryIt: () => Promise<unknown>): Promise<Attempt> {
  try {
    await tryIt();
    return { outcome: 'worked' };
  } catch (error) {
    return { outcome: 'failed', reason: describeFailure(error) };
  }
}

/** Mounts a small disk and checks that it has the requested size. */
async function tryDiskImage(means: {
  readonly hostCalls: HostCalls;
  readonly folder: string;
}): Promise<void> {
  const { hostCalls } = means;
  await using undo = new AsyncDisposableStack();
  const at = (name: string) => join(means.folder, 'disk', name);
  await mkdir(at('content'), { recursive: true });
  await mkdir(at('target'));
  await formatDisk(at('image'), at('content'), SIZE_MIB);
  undo.defer(() => hostCalls.unmount(at('target')));
  await hostCalls.mountImage({ image: at('image'), target: at('target'), fstype: 'ext4', readonly: false });
  const { blocks, bsize } = await statfs(at('target'));
  if (blocks * bsize > 2 * SIZE_MIB * 1024 * 1024)
    throw new Error('the mounted disk is larger than its image');
}
