import { PlatformError } from '@svc/contract/errors';
import type {
  EndReason,
  LifecycleUpdate,
  LogEntry,
  NetworkLogLine,
  ReadLogs,
  ReadNetworkLog,
  SandboxState,
  SandboxView,
  SpareProcess,
} from '../client/engine-api.ts';
import { NetworkLog } from '../events/network-log.ts';
import type { GuestSession } from '../guest/guest-link.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { adoptRun } from './adopt-run.ts';
import { applyPatches } from './apply-patches.ts';
import { changeNetwork, type NewNetwork } from './change-network.ts';
import { commandOf } from './command.ts';
import { describeEnd, isClean, type RunOutcome } from './describe-end.ts';
import { applyNetwork } from './interception.ts';
import { KeptRecord } from './kept-record.ts';
import type { Kit } from './kit.ts';
import { noteStop } from './note-stop.ts';
import { endingOf } from './overdue.ts';
import { wasRemoved, withoutPatches, type EngineRecord, type RunRecord } from './record.ts';
import type { Run } from './run.ts';
import { saveDisk } from './save-disk.ts';
import { shutDown } from './shut-down.ts';
import { configureAgain, limitsOf, prepareCommands, releaseRun, startRun } from './start-run.ts';
import { inWords, StepTimer } from './step-timer.ts';
import { keepsSpares, startSpare } from './spare-process.ts';
import { toView } from './view.ts';
import { ChangeTurns } from './change-turns.ts';

const SESSION_TIMEOUT_MS = 10_000;

/** One sandbox of this host: its record, its one-at-a-time changes, and its run while it lives. */
export class Sandbox {
  readonly #kit: Kit;
  readonly #runtime: Runtime;
  readonly #turns = new ChangeTurns();
  readonly #onEnded: (sandbox: Sandbox) => void;
  readonly #kept: KeptRecord;
  /** What was decided about its network; begins anew with the engine. */
  readonly networkLog = new NetworkLog();
  #run: Run | undefined;
  /** Why the run that is being stopped ends; kept when that takes several attempts. */
  #ending: RunOutcome | undefined;
  #isRemoved = false;
  /** Something was started in it while it waited for a caller. */
  #hasSpares = false;

  /** `onEnded`: a run has ended, by itself or on request. */
  constructor(kit: Kit, record: EngineRecord, runtime: Runtime, onEnded: (sandbox: Sandbox) => void) {
    this.#kit = kit;
    this.#kept = new KeptRecord(kit, record);
    this.#runtime = runtime;
    this.#onEnded = onEnded;
  }

  get record(): EngineRecord {
    return this.#kept.value;
  }

  /** Undefined while it does not run. */
  get run(): Run | undefined {
    return this.#run;
  }

  get #isActive(): boolean {
    const { state } = this.record;
    return state === 'starting' || state === 'running' || state === 'stopping';
  }

  /** An attempt to end the run has failed half-way, and nobody is at it. */
  get isStuck(): boolean {
    return this.record.state === 'stopping' && !this.#turns.busy;
  }

  /** An end could not be written to disk. */
  get isUnsaved(): boolean {
    return this.#kept.isUnsaved;
  }

  view(): SandboxView {
    return { ...toView(this.record, this.#kit.rlimitCeilings), ending: endingOf(this, Date.now()) };
  }

  async start(): Promise<SandboxView> {
    const { promise, resolve, reject } = Promise.withResolvers<SandboxView>();
    // The answer comes as soon as it runs; the turn ends when the runtime's program is done too.
    this.#turns
      .take(async () => {
        if (this.record.state === 'running') return resolve(this.view());
        const { settled } = await this.#startNow();
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
    return await this.#turns.takeSoon(options.graceMs ?? this.#kit.limits.stopGraceMs, async () => {
      const { state } = this.record;
      if (state === 'running' || state === 'stopping') {
        await this.#stopNow({ by: 'request', reason: options.reason ?? 'stopped' }, options.graceMs);
      }
      return this.view();
    });
  }

  /** Legal in any state, and again after it is gone. */
  async remove(): Promise<void> {
    await this.#turns.takeSoon(0, async () => {
      await this.#run?.close();
      this.#run = undefined;
      await releaseRun(this.#kit, this.record, this.#runtime);
      this.#isRemoved = true;
      this.networkLog.wake();
      await this.#kit.rootfs.removeDisk(this.record.handle);
      this.#kit.secrets.remove(this.record.handle);
      await this.#kept.remove();
    });
  }

  async saveAgain(): Promise<void> {
    await this.#turns.take(async () => {
      if (this.isUnsaved && !this.#isRemoved) await this.#kept.save(this.record);
    });
  }

  /** Starts a process for whoever gets the sandbox, while it waits for somebody. */
  async startSpare(process: SpareProcess, signal: AbortSignal): Promise<void> {
    await this.#turns.take(async () => {
      if (this.#run === undefined || this.record.id !== null) return;
      this.#hasSpares = true;
      await startSpare(this.#run, process, signal);
    });
  }

  /** Gives a sandbox that waited in the pool to a caller. */
  async handOut(
    identity: Pick<EngineRecord, 'id' | 'spec' | 'volumes' | 'hostVolume' | 'hostFolder' | 'imageScope'>,
    signal: AbortSignal,
  ): Promise<SandboxView> {
    return await this.#turns.take(async () => {
      const run = this.#run;
      const isAlive = this.record.state === 'running' && (await this.#runtime.isAlive(this.record.handle));
      if (run === undefined || !isAlive) throw new Error('it does not run any more');
      const startedAt = new Date().toISOString();
      const before = this.record;
      const image = { ...before.image, reference: identity.spec.image.reference };
      const base = { ...before, ...identity, image, createdAt: startedAt, complete: true };
      const record = { ...base, run: base.run === null ? null : { ...base.run, startedAt } };
      const endsSpares = this.#hasSpares && !keepsSpares(before, record);
      this.#kept.append(record);
      // Side by side, because a caller waits; each is over before the sandbox is theirs or, when one fails, removed.
      const steps = await Promise.allSettled([
        configureAgain(this.#kit, run, { before, record, endsSpares }, signal),
        applyNetwork(this.#kit.network, run.slot, record.spec.network, this.#kit.secrets.of(record.handle)),
        this.#kit.guestFolders.writeScripts(record.handle, identity.spec.runtime?.scripts ?? {}),
      ]);
      for (const step of steps) if (step.status === 'rejected') throw step.reason;
      await this.#afterStart(run, signal);
      run.touch();
      return this.view();
    });
  }

  /** Copies the disk to a new file; while it is copied, nothing else happens to the sandbox, and a running one cannot write. */
  async saveDisk(file: string, signal: AbortSignal): Promise<void> {
    const frozenMs = await this.#turns.take(async () => {
      if (this.#isRemoved) throw wasRemoved(this.record);
      return await saveDisk(this.#kit, this.record, file, signal);
    });
    if (frozenMs === undefined) return;
    this.#kept.journal.note('debug', `its disk was copied and stood still for ${Math.ceil(frozenMs)} ms`);
    await this.#kit.rootfs.settleCopy(file, signal);
  }

  /** What it may reach, from now on and in later runs. */
  async setNetwork({ network, values }: NewNetwork): Promise<SandboxView> {
    return await this.#turns.take(async () => {
      if (this.#isRemoved) throw wasRemoved(this.record);
      const record = { ...this.record, spec: { ...this.record.spec, network } };
      await changeNetwork(this.#kit, this.#run, [this.record, record], values, () => this.#kept.save(record));
      return this.view();
    });
  }

  /** How long it may run and be idle, from now on and in later runs. */
  async setLifecycle(change: LifecycleUpdate): Promise<SandboxView> {
    return await this.#turns.take(async () => {
      if (this.#isRemoved) throw wasRemoved(this.record);
      const { spec } = this.record;
      await this.#kept.save({
        ...this.record,
        spec: { ...spec, lifecycle: { ...spec.lifecycle, ...change } },
      });
      return this.view();
    });
  }

  /** A connection to svc-init for one client; ended with `leave`. */
  async openSession(): Promise<{ readonly session: GuestSession; readonly leave: () => void }> {
    const run = this.#run;
    if (run === undefined || this.record.state !== 'running') {
      const { state } = this.record;
      const message = `Sandbox ${this.record.id ?? ''} is ${state}; start it first`;
      throw new PlatformError('sandbox_not_running', message, { details: { state } });
    }
    run.wake();
    const deadline = AbortSignal.timeout(SESSION_TIMEOUT_MS);
    const session = await run.link.takeSession(deadline).catch((error: unknown) => {
      if (!deadline.aborted) throw error;
      const message = 'the sandbox opened no connection in time: it is busy, or has too many; try again';
      throw new PlatformError('unavailable', message, { cause: error });
    });
    this.#kept.journal.note('trace', 'a client connected');
    return { session, leave: () => run.link.drop(session) };
  }

  async *logs(options: ReadLogs, signal: AbortSignal): AsyncGenerator<LogEntry> {
    // Nothing more comes when the run is over; whoever follows is told by the end of the stream.
    yield* (await this.#kept.journal.open()).read(options, signal, () => !this.#isActive);
  }

  readNetworkLog(options: ReadNetworkLog, signal: AbortSignal): AsyncGenerator<NetworkLogLine> {
    return this.networkLog.read(options, signal, () => !this.#isActive || this.#isRemoved);
  }

  /**
   * Brings record and reality to agreement after the engine was restarted. Repeating it changes nothing.
   * When it fails, the sandbox is seen as stuck.
   */
  async recover(): Promise<void> {
    await this.#turns.take(async () => {
      const { state, run } = this.record;
      const adopted = await adoptRun(this.#kit, {
        record: this.record,
        runtime: this.#runtime,
        openLog: () => this.#kept.journal.open(),
        onOutOfMemory: () => this.#reportOom(),
      });
      if (adopted === undefined) {
        if (this.#isActive) await this.#endAfterRestart(state, run);
        return;
      }
      this.#run = adopted;
      this.#watch(adopted);
      this.#kept.journal.note('debug', 'an engine that was started again has taken it up');
    });
  }

  async #startNow(): Promise<{ settled: Promise<void> }> {
    const kit = this.#kit;
    const log = await this.#kept.journal.open();
    await this.#kept.move('starting', { run: null });
    const signal = AbortSignal.timeout(kit.limits.startTimeoutMs);
    let run: Run | undefined;
    let settled: Promise<void> | undefined;
    try {
      const request = {
        record: this.record,
        runtime: this.#runtime,
        log,
        onOutOfMemory: () => this.#reportOom(),
      };
      const started = await startRun(kit, request, signal);
      ({ run, settled } = started);
      this.#kept.journal.note('debug', `${this.#runtime.name} has started it: ${inWords(started.timings)}`);
      // Looked at when the start is over; until then a failure of the runtime's program must not count as nobody's.
      settled.catch(() => {});
      await this.#afterStart(run, signal);
      await this.#beginRun(run, started);
      this.#watch(run);
      return { settled };
    } catch (error) {
      // The runtime's program may still be at work; what it says no longer matters.
      await settled?.catch(() => {});
      await this.#failStart(run, error);
      throw error;
    }
  }

  async #beginRun(
    run: Run,
    started: { token: string; timings: Readonly<Record<string, number>> },
  ): Promise<void> {
    this.#run = run;
    const { bootId } = this.#kit;
    const startedAt = new Date().toISOString();
    const record = { bootId, token: started.token, slot: run.slot, startedAt, endedAt: null, end: null };
    await this.#kept.move('running', { run: { ...record, timings: started.timings } });
  }

  /** What must have happened before a caller may use the sandbox. */
  async #afterStart(run: Run, signal: AbortSignal): Promise<void> {
    if (!this.record.patched && (this.record.spec.patches ?? []).length > 0) {
      await applyPatches(this.#kit.mounts, this.record, run.link, signal);
      await this.#kept.save(withoutPatches(this.record));
    }
    await prepareCommands(this.#kit, run, this.record, signal);
    const command = commandOf(this.record);
    if (command === undefined || run.main.isRunning) return;
    await run.main.start(command, signal);
    this.#kept.journal.note('debug', `the main command ${command[0]} has been started`);
  }

  async #failStart(run: Run | undefined, error: unknown, to: SandboxState = 'failed'): Promise<void> {
    const message = error instanceof Error ? error.message : String(error);
    // What cannot be released now goes with the removal or the next engine; the sandbox must not stay `starting` for it.
    if (run !== undefined) await this.#release(run).catch(this.#logUndo);
    const now = new Date().toISOString();
    const previous = this.record.run;
    const end = { reason: 'start_failed', message, exitCode: null } as const;
    const { bootId } = this.#kit;
    const base = previous ?? { bootId, token: '', startedAt: now, timings: {} };
    await this.#kept.move(to, { run: { ...base, slot: null, endedAt: now, end } }, message);
    this.networkLog.wake();
  }

  readonly #logUndo = (error: unknown): void =>
    this.#kit.logger.error({ error, handle: this.record.handle }, 'could not undo a start');

  async #stopNow(outcome: RunOutcome, graceMs = this.#kit.limits.stopGraceMs): Promise<void> {
    const run = this.#run;
    const timer = new StepTimer();
    this.#ending ??= outcome;
    if (this.record.state === 'running') await this.#kept.move('stopping', {});
    if (run !== undefined) {
      const reason = this.#ending.by === 'request' ? this.#ending.reason : null;
      const isAlive = () => this.#runtime.isAlive(this.record.handle);
      const over = () => this.#turns.wantedAt;
      if (run.link.isConnected && graceMs > 0)
        await timer.time('processes', () => shutDown(run, { graceMs, reason, isAlive, over }));
      await this.#release(run, timer);
    } else await releaseRun(this.#kit, this.record, this.#runtime, undefined, timer);
    noteStop(this.#kit.logger, this.#kept.journal, this.record.handle, timer.result());
    await this.#finish(this.#ending);
    this.#ending = undefined;
  }

  async #release(run: Run, timer?: StepTimer): Promise<void> {
    await run.close();
    run.main.finish();
    this.#run = undefined;
    await releaseRun(this.#kit, this.record, this.#runtime, run.slot, timer);
  }

  async #finish(outcome: RunOutcome): Promise<void> {
    const end = describeEnd(outcome, this.record);
    const run = this.record.run;
    const ended = run === null ? null : { ...run, slot: null, endedAt: new Date().toISOString(), end };
    await this.#kept.move(isClean(end) ? 'stopped' : 'failed', { run: ended }, end.message);
    this.networkLog.wake();
    this.#onEnded(this);
  }

  /** Ends the sandbox when its run ends by itself. */
  #watch(run: Run): void {
    run.ended.promise
      .then((end) =>
        this.#turns.take(async () => {
          if (this.#run !== run || this.record.state !== 'running') return;
          await this.#stopNow(end, end.by === 'death' ? 0 : this.#kit.limits.stopGraceMs);
        }),
      )
      .catch((error: unknown) =>
        this.#kit.logger.error({ error, handle: this.record.handle }, 'could not end the run'),
      );
  }

  #reportOom(): void {
    const { memoryMib } = limitsOf(this.record.spec);
    this.#kept.journal.note('warn', `out of memory: the kernel ended a process (limit ${memoryMib} MiB)`);
    this.#kit.events.add('oom', this.record.id);
  }

  async #endAfterRestart(state: SandboxState, run: RunRecord | null): Promise<void> {
    if (state === 'starting') {
      await releaseRun(this.#kit, this.record, this.#runtime).catch(this.#logUndo);
      // `stopped`, not `failed`: nothing is wrong with the sandbox, and it can be started again.
      const error = new Error('the engine was restarted during the start; start it again');
      return await this.#failStart(undefined, error, 'stopped');
    }
    if (run !== null && run.bootId !== this.#kit.bootId)
      return await this.#stopNow({ by: 'request', reason: 'host_restart' });
    await this.#stopNow(
      state === 'stopping' ? { by: 'request', reason: 'stopped' } : { by: 'death', outOfMemory: false },
    );
  }
}
