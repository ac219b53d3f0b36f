import { PlatformError } from '@svc/contract/errors';
import type {
  LifecycleUpdate,
  LogEntry,
  NetworkLogLine,
  ReadLogs,
  ReadNetworkLog,
  SpareProcess,
} from '@svc/contract/orchestrator';
import type { EndReason, SandboxView } from '../client/engine-api.ts';
import { NetworkLog } from '../events/network-log.ts';
import type { GuestSession } from '../guest/guest-link.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { adoptRun } from './adopt-run.ts';
import { changeNetwork, type NewNetwork } from './change-network.ts';
import { ChangeMutex } from './change-mutex.ts';
import { CurrentRun } from './current-run.ts';
import { handOut, type Identity } from './hand-out.ts';
import { StoredRecord } from './stored-record.ts';
import type { Kit } from './kit.ts';
import { limitsOf } from './limits-of.ts';
import { makeUsable } from './make-usable.ts';
import { endingOf } from './overdue.ts';
import { wasRemoved, type EngineRecord } from './record.ts';
import type { Run } from './run.ts';
import { saveDisk } from './save-disk.ts';
import { startFirst, startSpare } from './spare-process.ts';
import { startRun, type StartedRun } from './start-run.ts';
import { inWords } from './step-timer.ts';
import { toView } from './view.ts';

const SESSION_TIMEOUT_MS = 10_000;
/** The warm pool shares the start semaphore as if it were one more organization. */
const POOL = 'the pool';

/** One sandbox of this host: its record, its run, and a mutex for its changes. */
export class Sandbox {
  readonly #kit: Kit;
  readonly #runtime: Runtime;
  readonly #mutex = new ChangeMutex();
  readonly #stored: StoredRecord;
  readonly #current: CurrentRun;
  /** Network decisions since the start of the engine. */
  readonly networkLog = new NetworkLog();
  /** Aborts when it is being removed. */
  readonly #unwanted = new AbortController();
  /** Processes were started in it while it waited in the pool. */
  #hasSpares = false;

  /** `onEnded`: a run has ended, with or without a request. */
  constructor(kit: Kit, record: EngineRecord, runtime: Runtime, onEnded: (sandbox: Sandbox) => void) {
    this.#kit = kit;
    this.#stored = new StoredRecord(kit, record);
    this.#runtime = runtime;
    const parts = { kit, runtime, stored: this.#stored, mutex: this.#mutex, networkLog: this.networkLog };
    this.#current = new CurrentRun({ ...parts, onEnded: () => onEnded(this) });
  }

  get record(): EngineRecord {
    return this.#stored.value;
  }

  /** Undefined while it does not run. */
  get run(): Run | undefined {
    return this.#current.value;
  }

  get #isActive(): boolean {
    const { state } = this.record;
    return state === 'starting' || state === 'running' || state === 'stopping';
  }

  /** An attempt to end the run has failed half-way, and none is under way. */
  get isStuck(): boolean {
    return this.record.state === 'stopping' && !this.#mutex.busy;
  }

  /** An end could not be written to disk. */
  get isUnsaved(): boolean {
    return this.#stored.isUnsaved;
  }

  view(): SandboxView {
    const { events, rlimitCeilings } = this.#kit;
    const ending = endingOf(this, Date.now());
    return { ...toView(this.record, rlimitCeilings), ending, sequence: events.sequence };
  }

  /** `signal` cancels the start while it waits for other starts. */
  async start(signal?: AbortSignal): Promise<SandboxView> {
    const { promise, resolve, reject } = Promise.withResolvers<SandboxView>();
    // Resolves as soon as it runs; the mutex is held until the runtime's program has ended too.
    this.#mutex
      .run(async () => {
        this.#requirePresent();
        if (this.record.state === 'running') return resolve(this.view());
        const { settled } = await this.#startNow(signal);
        resolve(this.view());
        await settled.catch((error: unknown) =>
          this.#kit.logger.error({ error }, 'the runtime failed after the start'),
        );
        return undefined;
      })
      .catch(reject);
    return await promise;
  }

  /** Shortens the grace period of a stop that is under way. */
  async stop(options: { readonly graceMs?: number; readonly reason?: EndReason } = {}): Promise<SandboxView> {
    return await this.#mutex.runSoon(options.graceMs ?? this.#kit.limits.stopGraceMs, async () => {
      this.#requirePresent();
      const { state } = this.record;
      if (state === 'running' || state === 'stopping') {
        await this.#current.end({ by: 'request', reason: options.reason ?? 'stopped' }, options.graceMs);
      }
      return this.view();
    });
  }

  /** Legal in any state and repeatable. Cancels a start that waits. */
  async remove(): Promise<void> {
    this.#unwanted.abort(wasRemoved(this.record));
    await this.#mutex.runSoon(0, async () => {
      await this.#current.discard();
      await this.#kit.rootfs.removeDisk(this.record.handle);
      this.#kit.secrets.remove(this.record.handle);
      this.#stored.remove();
      this.networkLog.wake();
    });
  }

  async saveAgain(): Promise<void> {
    await this.#mutex.run(async () => {
      if (this.isUnsaved && !this.#stored.isRemoved) await this.#stored.save(this.record);
    });
  }

  /** Starts a first process in a gVisor sandbox of the pool, which makes later ones start faster. A caller that gets the sandbox waits for it. */
  async settle(signal: AbortSignal): Promise<void> {
    await this.#mutex.run(async () => {
      const { run } = this;
      if (run === undefined || this.record.id !== null) return;
      if (this.record.isolation !== 'gvisor') return;
      await startFirst(run, signal).catch((error: unknown) =>
        this.#kit.logger.debug({ error, handle: this.record.handle }, 'a first process could not be started'),
      );
    });
  }

  /** Starts a process for the future caller of a sandbox that waits in the pool. */
  async startSpare(process: SpareProcess, signal: AbortSignal): Promise<void> {
    await this.#mutex.run(async () => {
      const { run } = this;
      if (run === undefined || this.record.id !== null) return;
      this.#hasSpares = true;
      await startSpare(run, process, signal);
    });
  }

  /** Gives a sandbox that waited in the pool to a caller. */
  async handOut(identity: Identity, signal: AbortSignal): Promise<void> {
    await this.#mutex.run(async () => {
      const { run } = this;
      const isAlive = this.record.state === 'running' && (await this.#runtime.isAlive(this.record.handle));
      if (run === undefined || !isAlive) throw new Error('it does not run any more');
      await handOut(this.#kit, { stored: this.#stored, run, hasSpares: this.#hasSpares }, identity, signal);
    });
  }

  /** Copies the disk to a new file; while it is copied, nothing else happens to the sandbox, and a running one cannot write. */
  async saveDisk(file: string, signal: AbortSignal): Promise<void> {
    const frozenMs = await this.#mutex.run(async () => {
      this.#requirePresent();
      return await saveDisk(this.#kit, this.record, file, signal);
    });
    if (frozenMs === undefined) return;
    this.#stored.journal.note('debug', `its disk was copied; writes waited for ${Math.ceil(frozenMs)} ms`);
    await this.#kit.rootfs.settleCopy(file, signal);
  }

  /** Changes its network policy, for this and later runs. */
  async setNetwork({ network, networkCeiling, values }: NewNetwork): Promise<SandboxView> {
    return await this.#mutex.run(async () => {
      this.#requirePresent();
      const ceiling = networkCeiling === undefined ? {} : { networkCeiling };
      const record = { ...this.record, ...ceiling, spec: { ...this.record.spec, network } };
      await changeNetwork(this.#kit, this.run, [this.record, record], values, () =>
        this.#stored.save(record),
      );
      return this.view();
    });
  }

  /** Changes its time limits, for this and later runs. */
  async setLifecycle(change: LifecycleUpdate): Promise<SandboxView> {
    return await this.#mutex.run(async () => {
      this.#requirePresent();
      const { spec } = this.record;
      await this.#stored.save({
        ...this.record,
        spec: { ...spec, lifecycle: { ...spec.lifecycle, ...change } },
      });
      return this.view();
    });
  }

  /** A connection to svc-init for one client; ended with `leave`. Call `wake` before sending over it. */
  async openSession(): Promise<{
    readonly session: GuestSession;
    readonly wake: () => void;
    readonly leave: () => void;
  }> {
    const { run } = this;
    if (run === undefined || this.record.state !== 'running') {
      const { state } = this.record;
      const message = `Sandbox ${this.record.id ?? ''} is ${state}; start it first`;
      throw new PlatformError('sandbox_not_running', message, { details: { state } });
    }
    const deadline = AbortSignal.timeout(SESSION_TIMEOUT_MS);
    const session = await run.link.takeSession(deadline).catch((error: unknown) => {
      if (!deadline.aborted) throw error;
      const message = 'the sandbox opened no connection in time: it is busy, or has too many; try again';
      throw new PlatformError('unavailable', message, { cause: error });
    });
    this.#stored.journal.note('trace', 'a client connected');
    return { session, wake: () => run.wake(), leave: () => run.link.drop(session) };
  }

  async *logs(options: ReadLogs, signal: AbortSignal): AsyncGenerator<LogEntry> {
    // The stream of a follower ends with the run.
    yield* (await this.#stored.journal.open()).read(options, signal, () => !this.#isActive);
  }

  readNetworkLog(options: ReadNetworkLog, signal: AbortSignal): AsyncGenerator<NetworkLogLine> {
    return this.networkLog.read(options, signal, () => !this.#isActive || this.#stored.isRemoved);
  }

  /**
   * Brings record and reality to agreement after the engine was restarted. Repeating it changes nothing.
   * When it fails, the sandbox is seen as stuck.
   */
  async recover(): Promise<void> {
    await this.#mutex.run(async () => {
      const adopted = await adoptRun(this.#kit, {
        record: this.record,
        runtime: this.#runtime,
        openLog: () => this.#stored.journal.open(),
        onOutOfMemory: () => this.#reportOom(),
      });
      if (adopted === undefined) {
        if (this.#isActive) await this.#current.endAfterRestart();
        return;
      }
      this.#current.hold(adopted);
      this.#stored.journal.note('debug', 'adopted by a restarted engine');
    });
  }

  /** A removal may have held the mutex before the caller. */
  #requirePresent(): void {
    if (this.#stored.isRemoved) throw wasRemoved(this.record);
  }

  async #startNow(caller?: AbortSignal): Promise<{ settled: Promise<void> }> {
    const kit = this.#kit;
    const log = await this.#stored.journal.open();
    await this.#stored.move('starting', { run: null });
    let run: Run | undefined;
    let settled: Promise<void> | undefined;
    try {
      using _ = await this.#acquireStart(caller);
      const signal = AbortSignal.timeout(kit.limits.startTimeoutMs);
      const request = {
        record: this.record,
        runtime: this.#runtime,
        log,
        onOutOfMemory: () => this.#reportOom(),
      };
      const started = await startRun(kit, request, signal);
      ({ run, settled } = started);
      this.#stored.journal.note('debug', `${this.#runtime.name} has started it: ${inWords(started.timings)}`);
      // Awaited after the start; until then a failure of the runtime's program must not be an unhandled rejection.
      settled.catch(() => {});
      await makeUsable(kit, this.#stored, run, signal);
      await this.#beginRun(started);
      return { settled };
    } catch (error) {
      // The runtime's program may still run; its outcome no longer matters.
      await settled?.catch(() => {});
      await this.#current.failStart(run, error);
      throw error;
    }
  }

  async #acquireStart(caller: AbortSignal | undefined): Promise<Disposable> {
    const { id, imageScope = null } = this.record;
    const wait = () => this.#stored.journal.note('debug', 'waiting for other starts');
    const { signal: unwanted } = this.#unwanted;
    const signal = caller === undefined ? unwanted : AbortSignal.any([unwanted, caller]);
    return await this.#kit.startPlaces.acquire(id === null ? POOL : imageScope, wait, signal);
  }

  async #beginRun({ run, token, timings }: StartedRun): Promise<void> {
    this.#current.hold(run);
    const { bootId } = this.#kit;
    const startedAt = new Date().toISOString();
    const record = { bootId, token, slot: run.slot, startedAt, endedAt: null, end: null, timings };
    await this.#stored.move('running', { run: record });
  }

  #reportOom(): void {
    const { memoryMib } = limitsOf(this.record.spec);
    this.#stored.journal.note('warn', `out of memory: the kernel ended a process (limit ${memoryMib} MiB)`);
    this.#kit.events.add('oom', this.record.id);
  }
}
