import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxSpec } from '@svc/contract';
import { settleAll } from '@svc/contract/async';
import { PlatformError } from '@svc/contract/errors';
import { missingAdvisories } from '../runtime/advisories.ts';
import { retryLostHelper } from '../host/retry-lost-helper.ts';
import type { SandboxLog } from '../logs/sandbox-log.ts';
import { readRequestedInterface } from '../network/requested-interface.ts';
import type { Reach, Slot } from '../network/network.ts';
import { eldestOf } from '../runtime/process-identity.ts';
import type { Runtime, RuntimeMount, RuntimeSpec } from '../runtime/runtime.ts';
import { checkLanded, checkPlaces, refuseSharedPlaces } from './check-places.ts';
import { configure, hostnameOf } from './configure-guest.ts';
import { applyNetwork, requireValues } from './interception.ts';
import type { Kit } from './kit.ts';
import { limitsOf } from './limits-of.ts';
import { prepareMounts, releaseStaging, releaseVolumes } from './prepare-mounts.ts';
import type { EngineRecord } from './record.ts';
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
  readonly record: EngineRecord;
  readonly runtime: Runtime;
  readonly log: SandboxLog;
  readonly onOutOfMemory: () => void;
}

const MIB = 1024 * 1024;

/** Brings a sandbox to life, up to the point where svc-init has connected and knows its configuration. */
export async function startRun(kit: Kit, request: StartRequest, signal: AbortSignal): Promise<StartedRun> {
  const { handle } = request.record;
  return await retryLostHelper(
    () => startOnce(kit, request, signal),
    signal,
    (error) => kit.logger.warn({ error, handle }, 'svc-host ended during a start, which begins again'),
  );
}

/** Every step registers its undo before it acts: when one fails, all before it are undone and nothing is left. */
async function startOnce(kit: Kit, request: StartRequest, signal: AbortSignal): Promise<StartedRun> {
  const { record, runtime, log, onOutOfMemory } = request;
  const { handle, spec } = record;
  await using undo = new AsyncDisposableStack();
  // From the beginning: the first move takes as long as the mounts.
  using _ = kit.tuning?.quickMoves.hold();
  const timer = new StepTimer();
  const token = randomBytes(32).toString('hex');
  const values = kit.secrets.of(handle);
  requireValues(spec.network, values);
  requireParent(kit, record);

  const slot = await timer.time('network', () =>
    kit.network.acquire(reachOf(spec), signal, readRequestedInterface(spec.network)),
  );
  undo.defer(() => kit.network.release(slot.key));

  undo.defer(() => kit.rootfs.unmount(handle));
  undo.defer(() => kit.guestFolders.remove(handle));
  makeGuestFolder(kit, record, slot);
  const [rootfs] = await settleAll([
    timer.time('rootfs', () => mountRoot(kit, record, slot, signal)),
    timer.time('policy', () => applyNetwork(kit.network, slot, record, values)),
  ]);

  undo.defer(() => releaseVolumes(kit.mounts, record));
  undo.defer(() => releaseStaging(kit.mounts, handle));
  const mounts = await timer.time('mounts', () => prepareMounts(kit.mounts, record, slot, signal));
  const shared = await checkPlaces(rootfs, mounts);
  refuseSharedPlaces(shared, missingAdvisories(runtime.name, versionOf(kit, runtime)));

  const run = await Run.listen({ kit, handle, token, slot, runtime, log, onOutOfMemory });
  undo.defer(() => run.close());

  // Registered first: a start that fails half-way still leaves state to remove.
  undo.defer(() => runtime.remove(handle));
  const settled = runtime.start(runtimeSpec(kit, record, { slot, rootfs, token, mounts }), signal);
  await timer.time('runtime', () => waitForHello(run, { runtime, handle, settled }, signal));
  // Nothing of the guest's runs yet. gVisor's mounts are its own kernel's: what lands astray there is inside the sandbox.
  if (runtime.isolation === 'container' && shared.length > 0)
    await checkLanded(kit.cgroups.processIds(handle), shared);
  kit.cgroups.limitSockets(handle, limitsOf(spec).memoryMib * MIB);
  kit.guestFolders.hideInit(handle);
  await timer.time('configure', () => configure(kit, run, record, signal));
  const staged = settled.then(() => {
    if (runtime.isolation === 'gvisor')
      kit.tuning?.raiseKernelPriority(eldestOf(kit.cgroups.processIds(handle)));
    return mounts.length === 0 ? undefined : releaseStaging(kit.mounts, handle);
  });

  undo.move();
  return { run, token, timings: timer.result(), settled: staged };
}

/** Undoes a run by its name alone, so that it also works after a crash. Can be repeated; tries every step. */
export async function releaseRun(
  kit: Kit,
  record: EngineRecord,
  runtime: Runtime,
  slot: Slot | null = record.run?.slot ?? null,
  timer = new StepTimer(),
): Promise<void> {
  const { handle } = record;
  const releaseMounts = () =>
    releaseStaging(kit.mounts, handle).then(() => releaseVolumes(kit.mounts, record));
  await timer.time('runtime', () => runtime.remove(handle));
  await settleAll([
    timer.time('folder', async () => kit.guestFolders.remove(handle)),
    timer.time('disk', () => kit.rootfs.unmount(handle)),
    timer.time('mounts', releaseMounts),
    timer.time('network', async () => (slot === null ? undefined : kit.network.release(slot.key))),
  ]);
}

/** The parent of its cgroup may have been removed since the create. */
function requireParent({ cgroups }: Kit, { cgroupParent = null }: EngineRecord): void {
  const problem = cgroupParent === null ? undefined : cgroups.parentProblem(cgroupParent);
  if (problem !== undefined)
    throw new PlatformError('start_failed', `cgroupParent: ${problem}`, { details: { cgroupParent } });
}

/** A policy that denies everything keeps its link: it can be changed while the sandbox runs. */
function reachOf(spec: SandboxSpec): Reach {
  return (spec.network?.enabled ?? true) ? 'public' : 'loopback';
}

async function mountRoot(kit: Kit, record: EngineRecord, slot: Slot, signal: AbortSignal): Promise<string> {
  const image = await kit.images.get(record.image.id);
  if (image === undefined) {
    const message = `the image ${record.image.reference} is gone; pull it again with \`svc image pull ${record.image.reference}\``;
    throw new PlatformError('image_not_found', message, { details: { image: record.image.reference } });
  }
  return await kit.rootfs.mount(record.handle, image.layers, slot, signal);
}

function makeGuestFolder(kit: Kit, record: EngineRecord, slot: Slot): void {
  const { vcpus, memoryMib } = limitsOf(record.spec);
  const scripts = record.spec.runtime?.scripts ?? {};
  const content = { scripts, ...kit.procContent({ vcpus, memoryMib }) };
  kit.guestFolders.create(record.handle, slot.idBase, content);
}

function runtimeSpec(
  kit: Kit,
  record: EngineRecord,
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
    cgroupParent: record.cgroupParent ?? null,
    ...limitsOf(record.spec),
    maxProcesses: kit.limits.maxProcesses,
    rlimits: record.spec.rlimits ?? [],
    mounts: parts.mounts,
    procFiles: { meminfo: folder.meminfo, cpuinfo: folder.cpuinfo, cpuOnline: folder.cpuOnline },
  };
}

function versionOf(kit: Kit, { name }: Runtime): string | null {
  return kit.probes.find((probe) => probe.name === name)?.version ?? null;
}

/**
 * Returns when svc-init has connected. Fails as soon as it cannot any more: the runtime failed, or PID 1 is gone (a runtime reports
 * success before the program is executed). On failure the runtime's program has ended.
 */
async function waitForHello(
  run: Run,
  launched: { readonly runtime: Runtime; readonly handle: string; readonly settled: Promise<unknown> },
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const { promise: failed, reject } = Promise.withResolvers<never>();
  launched.settled.then(() => watchDeath(launched, over.signal)).catch(reject);
  try {
    await Promise.race([run.firstHello(signal), failed]);
  } catch (error) {
    await launched.settled.catch(() => {});
    if (!signal.aborted) throw error;
    const message = 'the sandbox did not come up in time; the host may be overloaded';
    throw new PlatformError('start_failed', message, { cause: error });
  } finally {
    over.abort(OVER);
  }
}

const DEATH_CHECK_MS = 50;
/** One for all: an abort without a reason makes an error each time, with the way to it. */
const OVER = new Error('it is over');

async function watchDeath(
  launched: { readonly runtime: Runtime; readonly handle: string },
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    if (!(await launched.runtime.isAlive(launched.handle))) {
      throw new PlatformError('start_failed', 'the first process of the sandbox ended before it was ready');
    }
    await delay(DEATH_CHECK_MS, undefined, { ref: false });
  }
}
