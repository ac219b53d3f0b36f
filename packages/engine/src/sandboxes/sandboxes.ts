import { randomUUID } from 'node:crypto';
import type { SandboxSpec } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import { isErrno } from '@svc/contract/errno';
import type {
  CheckSandbox,
  CreateSandbox,
  CreateSnapshot,
  NetworkUpdate,
  SandboxView,
  SnapshotView,
  StartSandbox,
} from '../client/engine-api.ts';
import { retryLostHelper } from '../host/retry-lost-helper.ts';
import type { ImageProgress } from '../images/images.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { changedNetwork } from './change-network.ts';
import { checkRequest } from './check-request.ts';
import { chooseRuntime } from './choose-runtime.ts';
import { hearNetwork } from './hear-network.ts';
import { keptSlotOf } from './kept-slot.ts';
import type { Kit } from './kit.ts';
import { diskSizeMib, fromImage, originOf, type Origin } from './origin.ts';
import { volumesOf } from './prepare-mounts.ts';
import { newHandle, type EngineRecord } from './record.ts';
import { Sandbox } from './sandbox.ts';
import { WarmPool, type WarmTarget } from './warm-pool.ts';

const SANDBOX_ID = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;

interface SandboxesOptions {
  /** Sandboxes kept started per image reference. */
  readonly warm: readonly WarmTarget[];
}

/** All sandboxes of this host. */
export class Sandboxes {
  readonly #kit: Kit;
  readonly #byId = new Map<string, Sandbox>();
  readonly #removing = new Set<string>();
  /** One entry per create that has its image and is not in `#byId` yet. */
  readonly #imagesOfCreates = new Set<{ readonly imageId: string; readonly imageScope: string | null }>();
  readonly #pool: WarmPool;
  readonly #background = new Set<Promise<unknown>>();

  constructor(kit: Kit, options: SandboxesOptions) {
    this.#kit = kit;
    hearNetwork(kit, () => this.list());
    this.#pool = new WarmPool(kit, options.warm, (reference, isolation) =>
      this.#makeWarm(reference, isolation),
    );
  }

  /** After a restart: adopts what runs, ends what cannot go on, removes what was half made. Repeating it changes nothing. */
  async recover(): Promise<void> {
    const kit = this.#kit;
    const halfMade: string[] = [];
    const damaged: string[] = [];
    const records = await kit.records.readAll((handle, error) => {
      if (isErrno(error, 'ENOENT')) return halfMade.push(handle);
      kit.logger.error({ handle, error }, 'the record of a sandbox cannot be read; its disk is kept');
      return damaged.push(handle);
    });
    const known = records.map((record) => record.handle);
    kit.secrets.keepOnly(new Set(known));
    await this.#removeStrangers(new Set(known));
    await Promise.all([
      kit.network.recover(records.flatMap((record) => keptSlotOf(record, kit.secrets.of(record.handle)))),
      kit.rootfs.recover([...known, ...damaged]),
      kit.volumes.recover(holdersOf(records)),
      kit.snapshots.recover(),
    ]);
    for (const handle of halfMade) await kit.records.remove(handle);
    await Promise.allSettled(damaged.map((handle) => kit.rootfs.unmount(handle)));
    await Promise.all(records.map((record) => this.#recoverOrRetry(record)));
    this.#pool.start();
  }

  /** Fails as `create` would before it makes anything. */
  async check(request: CheckSandbox): Promise<void> {
    await checkRequest(this.#kit, request);
  }

  async create(
    request: CreateSandbox,
    onProgress: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ): Promise<SandboxView> {
    const id = request.id ?? randomUUID();
    if (!SANDBOX_ID.test(id)) throw invalidId(id);
    const { spec, runtime } = await checkRequest(this.#kit, request);
    this.#claim(id);
    try {
      const origin = await originOf(this.#kit, { ...request, spec }, { onProgress, signal });
      using _ = this.#holdImage(origin.image.id, request.imageScope);
      const mayBeWarm = request.start === true && request.snapshot === undefined;
      const warm = mayBeWarm ? this.#pool.take(spec, origin.image, runtime) : undefined;
      const view = warm && (await this.#handOut(warm, { ...request, id, spec }, signal));
      if (view !== undefined) return view;
      this.#byId.set(id, PENDING);
      return await this.#createCold(id, request, origin, runtime, signal);
    } catch (error) {
      this.#byId.delete(id);
      throw error;
    }
  }

  async start(id: string, { secretValues = {} }: StartSandbox = {}): Promise<SandboxView> {
    const sandbox = this.get(id);
    if (sandbox.record.state !== 'running') this.#kit.space.require();
    this.#kit.secrets.add(sandbox.record.handle, secretValues);
    return await sandbox.start();
  }

  async stop(id: string, graceMs?: number): Promise<SandboxView> {
    return await this.get(id).stop(graceMs === undefined ? {} : { graceMs });
  }

  /** Succeeds when there is no such sandbox. */
  async remove(id: string): Promise<void> {
    const sandbox = this.#byId.get(id);
    if (sandbox === undefined || sandbox === PENDING) return;
    this.#removing.add(sandbox.record.handle);
    try {
      await sandbox.remove();
    } finally {
      this.#removing.delete(sandbox.record.handle);
    }
    if (this.#byId.get(id) !== sandbox) return;
    this.#byId.delete(id);
    this.#kit.events.add('removed', id);
  }

  /** Refuses what a create with it would refuse. */
  async setNetwork(id: string, { secretValues = {}, ...change }: NetworkUpdate): Promise<SandboxView> {
    const sandbox = this.get(id);
    const { image, env = [] } = sandbox.record.spec;
    const network = changedNetwork(sandbox.record.spec, change);
    await checkRequest(this.#kit, { spec: { image, env, network } });
    return await sandbox.setNetwork({ network, values: secretValues });
  }

  /** Copies the disk of a sandbox that does not run. */
  async snapshot({ id, sandboxId }: CreateSnapshot, signal: AbortSignal): Promise<SnapshotView> {
    const sandbox = this.get(sandboxId);
    const { image, spec } = sandbox.record;
    const source = {
      sandboxId,
      image: { reference: image.reference, id: image.id },
      imageScope: sandbox.record.imageScope ?? null,
      diskSizeMib: diskSizeMib(spec),
      saveDisk: (file: string) => sandbox.saveDisk(file, signal),
    };
    return await this.#kit.snapshots.create(id, source, signal);
  }

  get(id: string): Sandbox {
    const sandbox = this.#byId.get(id);
    if (sandbox !== undefined && sandbox !== PENDING) return sandbox;
    throw new PlatformError('sandbox_not_found', `there is no sandbox ${id}; \`svc ps\` lists them`, {
      details: { sandboxId: id },
    });
  }

  list(): readonly Sandbox[] {
    return [...this.#byId.values()].filter((sandbox) => sandbox !== PENDING);
  }

  /** With a scope: by something that was made for it. What waits in the pool was made for nobody. */
  isImageInUse(imageId: string, scope?: string): boolean {
    const isOf = (imageScope: string | null | undefined) => scope === undefined || imageScope === scope;
    return (
      this.list().some(({ record }) => record.image.id === imageId && isOf(record.imageScope)) ||
      this.#imagesOfCreates
        .values()
        .some((create) => create.imageId === imageId && isOf(create.imageScope)) ||
      (scope === undefined && this.#pool.uses(imageId)) ||
      this.#kit.snapshots.isImageInUse(imageId, scope)
    );
  }

  /** Ends sandboxes that are idle or have run long enough, and those whose end has failed before. Called about once a second. */
  enforceDeadlines(now = Date.now()): void {
    for (const sandbox of this.list()) {
      if (sandbox.isStuck) this.#inBackground(sandbox.stop());
      if (sandbox.isUnsaved) this.#inBackground(sandbox.saveAgain());
      const reason = overdue(sandbox, now);
      if (reason === undefined || this.#removing.has(sandbox.record.handle)) continue;
      // At once, but what was written until then arrives.
      this.#inBackground(sandbox.stop(reason === 'max_duration' ? { graceMs: 1, reason } : { reason }));
    }
  }

  /** Waits for what is under way; sandboxes keep running. */
  async close(): Promise<void> {
    await this.#pool.close();
    await Promise.allSettled(this.#background);
  }

  async #createCold(
    id: string,
    request: CreateSandbox,
    origin: Origin,
    runtime: Runtime,
    signal: AbortSignal,
  ): Promise<SandboxView> {
    const sandbox = await this.#make({ ...request, id }, origin, runtime, signal);
    this.#byId.set(id, sandbox);
    this.#kit.events.add('created', id);
    try {
      return request.start === true ? await sandbox.start() : sandbox.view();
    } catch (error) {
      // The caller gets an error and no sandbox: nothing of it stays.
      await this.remove(id);
      throw error;
    }
  }

  async #make(
    request: Omit<CreateSandbox, 'id' | 'spec'> & { readonly id: string | null },
    { spec, image, createDisk }: Origin,
    runtime: Runtime,
    signal: AbortSignal,
  ): Promise<Sandbox> {
    const kit = this.#kit;
    const { id } = request;
    const record: EngineRecord = {
      handle: newHandle(),
      id,
      complete: id !== null,
      spec,
      isolation: runtime.isolation,
      runtime: runtime.name,
      image: { reference: spec.image.reference, id: image.id, config: image.config },
      imageScope: request.imageScope ?? null,
      volumes: request.volumes ?? {},
      hostVolume: request.hostVolume ?? null,
      hostFolder: request.hostFolder ?? null,
      createdAt: new Date().toISOString(),
      patched: false,
      state: 'created',
      run: null,
    };
    await using undo = new AsyncDisposableStack();
    undo.defer(() => kit.records.remove(record.handle));
    undo.defer(() => kit.secrets.remove(record.handle));
    undo.defer(() => kit.rootfs.removeDisk(record.handle));
    // Half a disk is removed by whoever failed to make it.
    await retryLostHelper(
      () => createDisk(record.handle, signal),
      signal,
      (error) => kit.logger.warn({ error, id }, 'svc-host ended while a disk was made, which begins again'),
    );
    // Written last: a crash before this leaves a disk without a record, which recovery removes.
    // A run does not outlive a loss of power, so what is started at once need not wait for the disk.
    await kit.records.write(record, { durable: id !== null && request.start !== true });
    kit.secrets.add(record.handle, request.secretValues ?? {});
    undo.move();
    return new Sandbox(kit, record, runtime, (ended) => this.#afterEnd(ended));
  }

  async #makeWarm(reference: string, isolation: WarmTarget['isolation']): Promise<Sandbox> {
    const spec: SandboxSpec = { image: { type: 'oci', reference } };
    const signal = AbortSignal.timeout(this.#kit.limits.startTimeoutMs);
    const options = { pullPolicy: 'never', auth: null, scope: null, onProgress: () => {}, signal } as const;
    const image = await this.#kit.images.resolve(reference, options);
    using _ = this.#holdImage(image.id);
    const runtime = chooseRuntime(this.#kit, isolation);
    const sandbox = await this.#make({ id: null }, fromImage(this.#kit, spec, image), runtime, signal);
    try {
      await sandbox.start();
    } catch (error) {
      await sandbox.remove();
      throw error;
    }
    return sandbox;
  }

  /** Undefined when it has ended while it waited, or ends now, through no fault of the caller. */
  async #handOut(
    sandbox: Sandbox,
    request: CreateSandbox & { readonly id: string },
    signal: AbortSignal,
  ): Promise<SandboxView | undefined> {
    const { id, spec, volumes = {}, hostVolume = null, hostFolder = null, imageScope = null } = request;
    this.#byId.set(id, sandbox);
    this.#kit.secrets.add(sandbox.record.handle, request.secretValues ?? {});
    try {
      const identity = { id, spec, volumes, hostVolume, hostFolder, imageScope };
      const view = await sandbox.handOut(identity, signal);
      this.#kit.events.add('created', id);
      this.#kit.events.add('running', id);
      return view;
    } catch (error) {
      await sandbox.remove();
      signal.throwIfAborted();
      if (PlatformError.is(error) && error.code !== 'unavailable') throw error;
      this.#kit.logger.warn({ error, id }, 'a waiting sandbox could not be used');
      return undefined;
    }
  }

  #holdImage(imageId: string, imageScope: string | null = null): Disposable {
    const entry = { imageId, imageScope };
    this.#imagesOfCreates.add(entry);
    return { [Symbol.dispose]: () => this.#imagesOfCreates.delete(entry) };
  }

  #claim(id: string): void {
    if (this.#byId.has(id)) {
      const message = `a sandbox ${id} exists already; remove it or choose another id`;
      throw new PlatformError('name_already_exists', message, { details: { sandboxId: id } });
    }
    this.#byId.set(id, PENDING);
  }

  #afterEnd(sandbox: Sandbox): void {
    const { id, spec } = sandbox.record;
    if (id === null) this.#pool.forget(sandbox);
    if (id === null) this.#inBackground(sandbox.remove());
    else if (spec.lifecycle?.ephemeral === true) this.#inBackground(this.remove(id));
  }

  /** One that the host does not let go of must not keep the others from their callers: its end is tried again every second. */
  async #recoverOrRetry(record: EngineRecord): Promise<void> {
    const { logger } = this.#kit;
    await this.#recoverOne(record).catch((error: unknown) =>
      logger.error({ error, handle: record.handle, id: record.id }, 'a sandbox could not be recovered'),
    );
  }

  async #recoverOne(record: EngineRecord): Promise<void> {
    const kit = this.#kit;
    const runtime = kit.knownRuntimes.find((candidate) => candidate.name === record.runtime);
    if (runtime === undefined) {
      kit.logger.error(
        { runtime: record.runtime, id: record.id },
        'the runtime of a sandbox is not available any more',
      );
      return;
    }
    const sandbox = new Sandbox(kit, record, runtime, (ended) => this.#afterEnd(ended));
    if (record.id === null || !record.complete) return await sandbox.remove();
    // Before anything can fail: it can be seen and removed whatever happens.
    this.#byId.set(record.id, sandbox);
    await sandbox.recover();
    const isOver = sandbox.record.state === 'stopped' || sandbox.record.state === 'failed';
    if (isOver && record.spec.lifecycle?.ephemeral === true) await this.remove(record.id);
  }

  /** Sandboxes that a runtime knows and no record does: their create was cut off. */
  async #removeStrangers(known: ReadonlySet<string>): Promise<void> {
    for (const runtime of this.#kit.knownRuntimes) {
      for (const handle of await runtime.list()) {
        if (known.has(handle)) continue;
        // The next engine tries again; what its cgroup holds cannot reach anything of ours.
        await runtime
          .remove(handle)
          .catch((error: unknown) =>
            this.#kit.logger.error({ error, handle }, 'a left sandbox cannot be removed'),
          );
      }
    }
  }

  #inBackground(work: Promise<unknown>): void {
    const tracked = work
      .catch((error: unknown) => this.#kit.logger.error({ error }, 'background work failed'))
      .finally(() => this.#background.delete(tracked));
    this.#background.add(tracked);
  }
}

/** Holds the place of a sandbox that is being made, so that two creates with one id cannot both succeed. */
const PENDING = Object.create(null) as Sandbox;

function overdue(sandbox: Sandbox, now: number): 'max_duration' | 'idle_timeout' | undefined {
  const { record, run } = sandbox;
  if (record.state !== 'running' || run === undefined || record.run === null) return undefined;
  const { max_duration_secs: max, idle_timeout_secs: idle } = record.spec.lifecycle ?? {};
  if (typeof max === 'number' && now - Date.parse(record.run.startedAt) >= max * 1000) return 'max_duration';
  return typeof idle === 'number' && run.idleMs() >= idle * 1000 ? 'idle_timeout' : undefined;
}

function holdersOf(records: readonly EngineRecord[]): Map<string, string[]> {
  const holders = new Map<string, string[]>();
  for (const record of records.filter(({ state }) => state === 'running')) {
    for (const volume of volumesOf(record))
      holders.set(volume, [...(holders.get(volume) ?? []), record.handle]);
  }
  return holders;
}

function invalidId(id: string): PlatformError {
  const message = `id: ${JSON.stringify(id.slice(0, 64))} is not 1–128 letters, digits, . _ : / or -`;
  return new PlatformError('invalid_request', message, { details: { field: 'id' } });
}
