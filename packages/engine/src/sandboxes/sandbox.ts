import { PlatformError } from '@svc/contract/errors';
import type {
  EndReason,
  LifecycleUpdate,
  LogEntry,
  ReadLogs,
  SandboxView,
  SpareProcess,
} from '../client/engine-api.ts';
import type { NetworkLogLine, ReadNetworkLog } from '../client/network-api.ts';
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
/** What waits for a caller shares places to start in as if it were one more organization. */
const POOL = 'the pool';

/** One sandbox of this host: its record, its one-at-a-time changes, and its run while it lives. */
export class Sandbox {
  readonly #kit: Kit;
  readonly #runtime: Runtime;
  readonly #mutex = new ChangeMutex();
  readonly #stored: StoredRecord;
  readonly #current: CurrentRun;
  /** What was decided about its network; begins anew with the engine. */
  readonly networkLog = new NetworkLog();
  /** Aborts when it need not be started any more. */
  readonly #unwanted = new AbortController();
  /** Something was started in it while it waited for a caller. */
  #hasSpares = false;

  /** `onEnded`: a run has ended, by itself or on request. */
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

  /** An attempt to end the run has failed half-way, and nobody is at it. */
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

  /** `signal`: of a caller who need not be served any more while it waits for others that are being started. */
  async start(signal?: AbortSignal): Promise<SandboxView> {
    const { promise, resolve, reject } = Promise.withResolvers<SandboxView>();
    // The answer comes as soon as it runs; the turn ends when the runtime's program is done too.
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

  /** Cuts a stop short that is under way and would take longer. */
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

  /** Legal in any state, and again after it is gone. One that waits for its start waits no longer. */
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

  /** It has started for nobody yet. Whoever gets it meanwhile waits for the end of this, which is sooner than a start. */
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

  /** Starts a process for whoever gets the sandbox, while it waits for somebody. */
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
    this.#stored.journal.note('debug', `its disk was copied and stood still for ${Math.ceil(frozenMs)} ms`);
    await this.#kit.rootfs.settleCopy(file, signal);
  }

  /** What it may reach, from now on and in later runs. */
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

  /** How long it may run and be idle, from now on and in later runs. */
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

  /** A connection to svc-init for one client; ended with `leave`. Before anything is sent over it the sandbox is to `wake`. */
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
    // Nothing more comes when the run is over; whoever follows is told by the end of the stream.
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
      this.#stored.journal.note('debug', 'an engine that was started again has taken it up');
    });
  }

  /** Whoever has waited for a turn may have waited for its removal. */
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
      using _ = await this.#takePlace(caller);
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
      // Looked at when the start is over; until then a failure of the runtime's program must not count as nobody's.
      settled.catch(() => {});
      await makeUsable(kit, this.#stored, run, signal);
      await this.#beginRun(started);
      return { settled };
    } catch (error) {
      // The runtime's program may still be at work; what it says no longer matters.
      await settled?.catch(() => {});
      await this.#current.failStart(run, error);
      throw error;
    }
  }

  async #takePlace(caller: AbortSignal | undefined): Promise<Disposable> {
    const { id, imageScope = null } = this.record;
    const wait = () => this.#stored.journal.note('debug', 'it waits for others that are being started');
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
