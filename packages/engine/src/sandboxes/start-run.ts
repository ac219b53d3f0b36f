import { randomBytes } from 'node:crypto';
import { DEFAULT_MEMORY_MIB, DEFAULT_VCPUS, PlatformError, type SandboxSpec } from '@svc/contract';
import { guestConfig } from '../guest/guest-config.ts';
import { refusalReason } from '../guest/guest-messages.ts';
import type { SandboxLog } from '../logs/sandbox-log.ts';
import type { Reach, Slot } from '../network/network.ts';
import type { Runtime, RuntimeMount, RuntimeSpec } from '../runtime/runtime.ts';
import type { Kit } from './kit.ts';
import { prepareMounts, releaseStaging, releaseVolumes } from './prepare-mounts.ts';
import type { SandboxRecord } from './record.ts';
import { Run } from './run.ts';
import { StepTimer } from './step-timer.ts';

export interface StartedRun {
  readonly run: Run;
  readonly token: string;
  readonly timings: Readonly<Record<string, number>>;
  /** The runtime's own program is done; only then may the sandbox be changed again. */
  readonly settled: Promise<void>;
}

interface StartRequest {
  readonly record: SandboxRecord;
  readonly runtime: Runtime;
  readonly log: SandboxLog;
  readonly onOutOfMemory: () => void;
}

/**
 * Brings a sandbox to life, up to the point where svc-init has connected and knows its configuration.
 * Every step registers its undo before it acts: when one fails, all before it are undone and nothing is left.
 */
export async function startRun(kit: Kit, request: StartRequest, signal: AbortSignal): Promise<StartedRun> {
  const { record, runtime, log, onOutOfMemory } = request;
  const { handle, spec } = record;
  await using undo = new AsyncDisposableStack();
  const timer = new StepTimer();
  const token = randomBytes(32).toString('hex');

  const slot = await timer.time('network', () => kit.network.acquire(reachOf(spec), signal));
  undo.defer(() => kit.network.release(slot.key));

  undo.defer(() => kit.rootfs.unmount(handle));
  undo.defer(() => kit.guestFolders.remove(handle));
  const [rootfs] = await timer.time('rootfs', () =>
    bothOrFirstError(mountRoot(kit, record, slot, signal), makeGuestFolder(kit, record)),
  );

  undo.defer(() => releaseVolumes(kit.mounts, record));
  undo.defer(() => releaseStaging(kit.mounts, handle));
  const mounts = await timer.time('mounts', () => prepareMounts(kit.mounts, record, slot, signal));

  const run = await Run.listen({ kit, handle, token, slot, runtime, log, onOutOfMemory });
  undo.defer(() => run.close());

  // Registered first: a start that fails half-way still leaves state to remove.
  undo.defer(() => runtime.remove(handle));
  const settled = runtime.start(runtimeSpec(kit, record, { slot, rootfs, token, mounts }), signal);
  await timer.time('runtime', () => firstOf(run.firstHello(signal), settled, signal));
  await timer.time('configure', () => configure(run, record, signal));
  const staged = settled.then(() => (mounts.length === 0 ? undefined : releaseStaging(kit.mounts, handle)));

  undo.move();
  return { run, token, timings: timer.result(), settled: staged };
}

/** Undoes a run by its name alone, so that it also works after a crash. Can be repeated; tries every step. */
export async function releaseRun(
  kit: Kit,
  record: SandboxRecord,
  runtime: Runtime,
  slot: Slot | null = record.run?.slot ?? null,
): Promise<void> {
  const { handle } = record;
  await using undo = new AsyncDisposableStack();
  if (slot !== null) undo.defer(() => kit.network.release(slot.key));
  undo.defer(() => releaseVolumes(kit.mounts, record));
  undo.defer(() => releaseStaging(kit.mounts, handle));
  undo.defer(() => kit.guestFolders.remove(handle));
  undo.defer(() => kit.rootfs.unmount(handle));
  undo.defer(() => runtime.remove(handle));
}

/** Sends svc-init what every process starts from. Also used when a waiting sandbox is handed out. */
export async function configure(run: Run, record: SandboxRecord, signal: AbortSignal): Promise<void> {
  const config = guestConfig(record.spec, record.image.config, {
    hostname: hostnameOf(record),
    link: run.slot.link,
  });
  const answer = await run.link.request('svc.configure', { ...config }, signal);
  if (answer.type === 'svc.configured') return;
  throw new PlatformError('start_failed', `the sandbox refused its configuration: ${refusalReason(answer)}`);
}

export function hostnameOf(record: SandboxRecord): string {
  return record.spec.runtime?.hostname ?? record.handle.slice(0, 12);
}

export function reachOf(spec: SandboxSpec): Reach {
  const policy = spec.network?.policy;
  const deniesAll = policy !== undefined && policy !== null && (policy.rules ?? []).length === 0;
  return (spec.network?.enabled ?? true) && !deniesAll ? 'public' : 'loopback';
}

async function mountRoot(kit: Kit, record: SandboxRecord, slot: Slot, signal: AbortSignal): Promise<string> {
  const image = await kit.images.get(record.image.id);
  if (image === undefined) {
    const message = `the image ${record.image.reference} is gone; pull it again with \`svc image pull ${record.image.reference}\``;
    throw new PlatformError('image_not_found', message, { details: { image: record.image.reference } });
  }
  return await kit.rootfs.mount(record.handle, image.layers, slot, signal);
}

async function makeGuestFolder(kit: Kit, record: SandboxRecord): Promise<void> {
  const { vcpus, memoryMib } = limitsOf(record.spec);
  const scripts = record.spec.runtime?.scripts ?? {};
  await kit.guestFolders.create(record.handle, { scripts, ...kit.procContent({ vcpus, memoryMib }) });
}

export function limitsOf(spec: SandboxSpec): { vcpus: number; memoryMib: number } {
  return {
    vcpus: spec.resources?.vcpus ?? DEFAULT_VCPUS,
    memoryMib: spec.resources?.memory_mib ?? DEFAULT_MEMORY_MIB,
  };
}

function runtimeSpec(
  kit: Kit,
  record: SandboxRecord,
  parts: { slot: Slot; rootfs: string; token: string; mounts: readonly RuntimeMount[] },
): RuntimeSpec {
  const folder = kit.guestFolders.of(record.handle);
  return {
    handle: record.handle,
    rootfs: parts.rootfs,
    hostname: hostnameOf(record),
    guestFolder: folder.path,
    initToken: parts.token,
    profile: record.spec.security_profile ?? 'default',
    slot: parts.slot,
    ...limitsOf(record.spec),
    maxProcesses: kit.limits.maxProcesses,
    rlimits: record.spec.rlimits ?? [],
    mounts: parts.mounts,
    procFiles: { meminfo: folder.meminfo, cpuinfo: folder.cpuinfo, cpuOnline: folder.cpuOnline },
  };
}

/** Waits for both, so that no step is still at work when the undo begins. */
async function bothOrFirstError<A, B>(first: Promise<A>, second: Promise<B>): Promise<[A, B]> {
  const [a, b] = await Promise.allSettled([first, second]);
  if (a.status === 'rejected') throw a.reason;
  if (b.status === 'rejected') throw b.reason;
  return [a.value, b.value];
}

/** The first hello, or the runtime's failure, whichever comes first; on failure the runtime's program has ended. */
async function firstOf(
  hello: Promise<unknown>,
  settled: Promise<unknown>,
  signal: AbortSignal,
): Promise<void> {
  const { promise: failed, reject } = Promise.withResolvers<never>();
  settled.catch(reject);
  try {
    await Promise.race([hello, failed]);
  } catch (error) {
    await settled.catch(() => {});
    if (!signal.aborted) throw error;
    throw new PlatformError(
      'start_failed',
      'the sandbox did not come up in time; the host may be overloaded',
      {
        cause: error,
      },
    );
  }
}
