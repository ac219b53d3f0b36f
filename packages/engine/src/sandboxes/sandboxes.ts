import { randomUUID } from 'node:crypto';
import { PlatformError } from '@svc/contract/errors';
import type {
  CheckSandbox,
  CreateSandbox,
  CreateSnapshot,
  LifecycleUpdate,
  NetworkUpdate,
  SnapshotView,
  SpareProcess,
} from '@svc/contract/orchestrator';
import type { SandboxView, StartSandbox } from '../client/engine-api.ts';
import type { ImageProgress } from '../images/images.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { changedNetwork } from './change-network.ts';
import { checkRequest } from './check-request.ts';
import { chooseRuntime } from './choose-runtime.ts';
import { createRecord } from './create-record.ts';
import { watchNetwork } from './watch-network.ts';
import type { Kit } from './kit.ts';
import { diskSizeMib, fromImage, originOf, type Origin } from './origin.ts';
import { wasRemoved, type EngineRecord } from './record.ts';
import { recoverHost } from './recover-host.ts';
import { Sandbox } from './sandbox.ts';
import { endingOf, overdue } from './overdue.ts';
import { WarmSandboxes, type WarmOptions, type WarmRequest } from './warm-sandboxes.ts';

const SANDBOX_ID = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;

/** All sandboxes of this host. */
export class Sandboxes {
  readonly #kit: Kit;
  readonly #byId = new Map<string, Sandbox | Claim>();
  readonly #removing = new Set<string>();
  /** Whose end was announced. */
  readonly #announced = new WeakSet<Sandbox>();
  /** One entry per create that has its image and is not in `#byId` yet. */
  readonly #imagesOfCreates = new Set<{ readonly imageId: string; readonly imageScope: string | null }>();
  readonly warm: WarmSandboxes;
  readonly #background = new Set<Promise<unknown>>();

  constructor(kit: Kit, options: WarmOptions) {
    this.#kit = kit;
    watchNetwork(kit, () => this.list());
    this.warm = new WarmSandboxes(kit, options, (request) => this.#makeWarm(request));
  }

  /** After a restart: adopts running sandboxes, ends those that cannot continue, removes incomplete ones. Repeating it changes nothing. */
  async recover(): Promise<void> {
    const records = await recoverHost(this.#kit);
    const named = newestOfEachId(records);
    await Promise.all(records.map((record) => this.#recoverOrRetry(record, named.has(record))));
    this.warm.start();
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
    using claim = this.#claim(id);
    const origin = await originOf(this.#kit, { ...request, spec }, { onProgress, signal });
    using _ = this.#holdImage(origin.image.id, request.imageScope);
    using __ = this.warm.duringCreate();
    // One that runs already has its cgroup.
    const hasParent = (request.cgroupParent ?? null) !== null;
    const mayBeWarm = request.start === true && request.snapshot === undefined && !hasParent;
    const scope = request.imageScope ?? null;
    const warm = mayBeWarm ? this.warm.take(spec, origin.image, runtime, scope) : undefined;
    const view = warm && (await this.#handOut(warm, { ...request, id, spec }, claim, signal));
    return view ?? (await this.#createCold(id, request, origin, runtime, signal));
  }

  async start(id: string, { secretValues = {} }: StartSandbox = {}): Promise<SandboxView> {
    const sandbox = this.get(id);
    if (sandbox.record.state !== 'running') this.#kit.space.require();
    this.#kit.secrets.add(sandbox.record.handle, secretValues);
    return await sandbox.start();
  }

  /** Starts a process that a sandbox runs also in waiting sandboxes of the same configuration. */
  async expectProcess(id: string, process: SpareProcess): Promise<void> {
    const { spec, image, isolation, imageScope = null } = this.get(id).record;
    const known = await this.#kit.images.get(image.id);
    if (known !== undefined)
      this.warm.expectProcess({ spec, image: known, isolation, scope: imageScope }, process);
  }

  async stop(id: string, graceMs?: number): Promise<SandboxView> {
    return await this.get(id).stop(graceMs === undefined ? {} : { graceMs });
  }

  /** Succeeds when there is no such sandbox. @returns the sequence of the newest event after it */
  async remove(id: string): Promise<number> {
    const sandbox = this.#byId.get(id);
    const { events } = this.#kit;
    if (!(sandbox instanceof Sandbox)) return events.sequence;
    this.#removing.add(sandbox.record.handle);
    try {
      await sandbox.remove();
    } finally {
      this.#removing.delete(sandbox.record.handle);
    }
    if (this.#byId.get(id) !== sandbox) return events.sequence;
    this.#byId.delete(id);
    events.add('removed', id);
    return events.sequence;
  }

  /** Refuses what a create with it would refuse, but for what is beyond a ceiling, to which it is held. */
  async setNetwork(
    id: string,
    { secretValues = {}, networkCeiling, ...change }: NetworkUpdate,
  ): Promise<SandboxView> {
    const sandbox = this.get(id);
    const { image, env = [] } = sandbox.record.spec;
    const network = changedNetwork(sandbox.record.spec, change);
    await checkRequest(this.#kit, { spec: { image, env, network } }, { mayExceedCeiling: true });
    const view = await sandbox.setNetwork({ network, networkCeiling, values: secretValues });
    // Not every server that publishes its ports was asked for this.
    this.#kit.events.add('network_changed', id);
    return view;
  }

  async setLifecycle(id: string, change: LifecycleUpdate): Promise<SandboxView> {
    const sandbox = this.get(id);
    const { image } = sandbox.record.spec;
    await checkRequest(this.#kit, { spec: { image, lifecycle: change } });
    return await sandbox.setLifecycle(change);
  }

  /** Copies the disk of a sandbox, which may run on. */
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
    if (sandbox instanceof Sandbox) return sandbox;
    throw new PlatformError('sandbox_not_found', `there is no sandbox ${id}; \`svc ps\` lists them`, {
      details: { sandboxId: id },
    });
  }

  list(): readonly Sandbox[] {
    return [...this.#byId.values()].filter((sandbox) => sandbox instanceof Sandbox);
  }

  /** With a scope: by its sandboxes and snapshots only, without the pool. */
  isImageInUse(imageId: string, scope?: string): boolean {
    const isOf = (imageScope: string | null | undefined) => scope === undefined || imageScope === scope;
    return (
      this.list().some(({ record }) => record.image.id === imageId && isOf(record.imageScope)) ||
      this.#imagesOfCreates
        .values()
        .some((create) => create.imageId === imageId && isOf(create.imageScope)) ||
      (scope === undefined && this.warm.uses(imageId)) ||
      this.#kit.snapshots.isImageInUse(imageId, scope)
    );
  }

  /** Ends sandboxes that are idle or have run long enough, and those whose end has failed before. Called about once a second. */
  enforceDeadlines(now = Date.now()): void {
    this.warm.tend();
    for (const sandbox of this.list()) {
      if (sandbox.isStuck) this.#inBackground(sandbox.stop());
      if (sandbox.isUnsaved) this.#inBackground(sandbox.saveAgain());
      this.#announceEnd(sandbox, now);
      const reason = overdue(sandbox, now);
      if (reason === undefined || this.#removing.has(sandbox.record.handle)) continue;
      // At once, but what was written until then arrives.
      this.#inBackground(sandbox.stop(reason === 'max_duration' ? { graceMs: 1, reason } : { reason }));
    }
  }

  /** Waits for what is under way; sandboxes keep running. */
  async close(): Promise<void> {
    await this.warm.close();
    await Promise.allSettled(this.#background);
  }

  /** Once, as long as nothing puts the end off. */
  #announceEnd(sandbox: Sandbox, now: number): void {
    const { id } = sandbox.record;
    const ending = endingOf(sandbox, now);
    if (ending === null) this.#announced.delete(sandbox);
    else if (!this.#announced.has(sandbox) && id !== null) {
      this.#announced.add(sandbox);
      this.#kit.events.add('ending', id, ending.reason);
    }
  }

  async #createCold(
    id: string,
    request: CreateSandbox,
    origin: Origin,
    runtime: Runtime,
    signal: AbortSignal,
  ): Promise<SandboxView> {
    const record = await createRecord(this.#kit, { ...request, id }, origin, runtime, signal);
    const sandbox = this.#open(record, runtime);
    this.#byId.set(id, sandbox);
    this.#kit.events.add('created', id);
    try {
      return request.start === true ? await sandbox.start(signal) : sandbox.view();
    } catch (error) {
      // The caller gets an error and no sandbox: nothing of it stays.
      await this.remove(id);
      throw error;
    }
  }

  async #makeWarm({ spec, isolation, imageId }: WarmRequest): Promise<Sandbox> {
    const signal = AbortSignal.timeout(this.#kit.limits.startTimeoutMs);
    const options = { pullPolicy: 'never', auth: null, scope: null, onProgress: () => {}, signal } as const;
    const { images } = this.#kit;
    using _ = imageId === undefined ? null : this.#holdImage(imageId);
    const image = await (imageId === undefined
      ? images.resolve(spec.image.reference, options)
      : images.get(imageId));
    if (image === undefined) throw new Error('its image is not here any more');
    using __ = this.#holdImage(image.id);
    const runtime = chooseRuntime(this.#kit, isolation);
    const origin = fromImage(this.#kit, spec, image);
    const sandbox = this.#open(await createRecord(this.#kit, { id: null }, origin, runtime, signal), runtime);
    try {
      await sandbox.start();
    } catch (error) {
      await sandbox.remove();
      throw error;
    }
    this.#inBackground(sandbox.settle(signal));
    return sandbox;
  }

  /** Undefined when it has ended while it waited, or ends now, through no fault of the caller. */
  async #handOut(
    sandbox: Sandbox,
    request: CreateSandbox & { readonly id: string },
    claim: Claim,
    signal: AbortSignal,
  ): Promise<SandboxView | undefined> {
    const { id, spec, volumes = {}, hostVolume = null, hostFolder = null, imageScope = null } = request;
    const { networkCeiling = null } = request;
    this.#byId.set(id, sandbox);
    this.#kit.secrets.add(sandbox.record.handle, request.secretValues ?? {});
    try {
      const identity = { id, spec, volumes, hostVolume, hostFolder, imageScope, networkCeiling };
      await sandbox.handOut(identity, signal);
      this.#kit.events.add('created', id);
      this.#kit.events.add('running', id);
      return sandbox.view();
    } catch (error) {
      await sandbox.remove();
      // It was removed meanwhile, and another may have been made with its id.
      if (this.#byId.get(id) !== sandbox) throw wasRemoved(sandbox.record);
      this.#byId.set(id, claim);
      signal.throwIfAborted();
      if (PlatformError.is(error) && error.code !== 'unavailable') throw error;
      this.#kit.logger.warn({ error, id }, 'a waiting sandbox could not be used');
      return undefined;
    }
  }

  #open(record: EngineRecord, runtime: Runtime): Sandbox {
    return new Sandbox(this.#kit, record, runtime, (ended) => this.#afterEnd(ended));
  }

  #holdImage(imageId: string, imageScope: string | null = null): Disposable {
    const entry = { imageId, imageScope };
    this.#imagesOfCreates.add(entry);
    return { [Symbol.dispose]: () => this.#imagesOfCreates.delete(entry) };
  }

  /** Given back when the create is over, unless there is a sandbox in its place: also one that could not be removed again. */
  #claim(id: string): Claim {
    if (this.#byId.has(id)) {
      const message = `a sandbox ${id} exists already; remove it or choose another id`;
      throw new PlatformError('name_already_exists', message, { details: { sandboxId: id } });
    }
    const claim = {
      [Symbol.dispose]: () => {
        if (this.#byId.get(id) === claim) this.#byId.delete(id);
      },
    };
    this.#byId.set(id, claim);
    return claim;
  }

  #afterEnd(sandbox: Sandbox): void {
    const { id, spec } = sandbox.record;
    if (id === null) this.warm.forget(sandbox);
    if (id === null) this.#inBackground(sandbox.remove());
    else if (spec.lifecycle?.ephemeral === true) this.#inBackground(this.remove(id));
  }

  /** A sandbox that cannot be ended must not delay the others: its end is tried again every second. */
  async #recoverOrRetry(record: EngineRecord, isNamed: boolean): Promise<void> {
    const { logger } = this.#kit;
    await this.#recoverOne(record, isNamed).catch((error: unknown) =>
      logger.error({ error, handle: record.handle, id: record.id }, 'a sandbox could not be recovered'),
    );
  }

  async #recoverOne(record: EngineRecord, isNamed: boolean): Promise<void> {
    const kit = this.#kit;
    const runtime = kit.knownRuntimes.find((candidate) => candidate.name === record.runtime);
    if (runtime === undefined) {
      kit.logger.error(
        { runtime: record.runtime, id: record.id },
        'the runtime of a sandbox is not available any more',
      );
      return;
    }
    const sandbox = this.#open(record, runtime);
    if (record.id === null || !isNamed) return await sandbox.remove();
    // Before anything can fail, so that it can always be seen and removed.
    this.#byId.set(record.id, sandbox);
    await sandbox.recover();
    const isOver = sandbox.record.state === 'stopped' || sandbox.record.state === 'failed';
    if (isOver && record.spec.lifecycle?.ephemeral === true) await this.remove(record.id);
  }

  #inBackground(work: Promise<unknown>): void {
    const tracked = work
      .catch((error: unknown) => this.#kit.logger.error({ error }, 'background work failed'))
      .finally(() => this.#background.delete(tracked));
    this.#background.add(tracked);
  }
}

/** Holds the place of a sandbox that is being made, so that two creates with one id cannot both succeed. */
type Claim = Disposable;

/** Of two records with one id, which earlier versions could leave, the newer one belongs to the caller. */
function newestOfEachId(records: readonly EngineRecord[]): ReadonlySet<EngineRecord> {
  const inOrder = records
    .filter(({ complete }) => complete)
    .toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
  return new Set(new Map(inOrder.map((record) => [record.id, record])).values());
}

function invalidId(id: string): PlatformError {
  const message = `id: ${JSON.stringify(id.slice(0, 64))} is not 1–128 letters, digits, . _ : / or -`;
  return new PlatformError('invalid_request', message, { details: { field: 'id' } });
}
