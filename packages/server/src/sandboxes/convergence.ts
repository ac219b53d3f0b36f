import { EventEmitter } from 'node:events';
import { PlatformError } from '@svc/contract';
import { KeyedMutex } from '@svc/contract/async';
import {
  type FetchProgress,
  type NewOrchestratorSandbox,
  type ReportedChange,
  STARTING_MESSAGE,
  type SandboxReport,
} from '@svc/contract/orchestrator';
import { unavailableIfOutOfFiles } from '@svc/contract/out-of-files';
import type { Logger } from 'pino';
import type { ChannelPool } from '../orchestrator/channel-pool.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import { ingressOf, type MayEnter } from '../published-ports/ingress.ts';
import type { PortForwarder } from '../published-ports/port-forwarder.ts';
import type { RefusedConnectionLog } from '../published-ports/refused-connections.ts';
import { closeRun } from '../store/runs.ts';
import { getSandbox, type SandboxRecord } from '../store/sandboxes.ts';
import { BackOff } from './back-off.ts';
import type { Claims } from './claims.ts';
import { deadlineOf } from './deadlines.ts';
import { decide, isNoted, type Decision } from './decide.ts';
import { toEngineRequest, type RequestParts } from './engine-request.ts';
import { KnownChanges } from './known-changes.ts';
import { lostReport } from './lost-report.ts';
import { NextChange } from './next-change.ts';
import { amend, noteFailure, observe } from './observe.ts';
import { isTimeout, mayPass, notInTime, tooLate } from './passing-failures.ts';
import { openSecrets, sealSecrets } from './sandbox-secrets.ts';
import { StartProgress, type Progress } from './start-progress.ts';
import { updateEngine } from './update-engine.ts';

const ASK_TIMEOUT_MS = 30_000;
const STOP_GRACE_MS = 10_000;
const STOP_TIMEOUT_MS = 60_000;
const REMOVE_TIMEOUT_MS = 60_000;

export interface ConvergenceParts extends RequestParts {
  readonly orchestrator: Orchestrator;
  readonly channels: ChannelPool;
  readonly ports: PortForwarder;
  readonly refused: Pick<RefusedConnectionLog, 'note'>;
  readonly claims: Claims;
  /** Told when a run is over, so that nothing of it is used in the next one. */
  readonly onRunEnded: (sandboxId: string) => void;
  readonly logger: Logger;
}

export interface ConvergeOptions {
  /**
   * A caller waits: every failure is thrown at once. Otherwise transient failures (no engine, no capacity) are retried until the
   * state's deadline.
   */
  readonly isAwaited?: boolean;
  /** The record was just created, so the engine does not know it unless another server has started it. */
  readonly isNew?: boolean;
  readonly onProgress?: (progress: Progress) => void;
}

/** What a step was answered. */
interface Answered {
  /** Undefined: the orchestrator does not have it any more. */
  readonly report: SandboxReport | undefined;
  readonly sequence: number | undefined;
}

interface Work {
  readonly backOff: BackOff;
  /** Of the step under way. */
  step: AbortController;
}

/**
 * Converges one sandbox: compares its desired state with what the orchestrator reports and takes the steps in between, across failures.
 * - Handlers store the desired state (desired-state.ts) in their own transactions before they call this. After a crash another server
 *   continues.
 * - Work on one sandbox never overlaps, here or in another server. It runs to its end also when the caller goes away.
 * - The record decides the next step: a finished step is not repeated, an interrupted one is.
 */
export class Convergence {
  /** Of starts that this server brings about. */
  readonly progress = new StartProgress();
  readonly #changes = new EventEmitter<Record<string, []>>().setMaxListeners(0);
  readonly #parts: ConvergenceParts;
  readonly #mutex = new KeyedMutex();
  readonly #works = new Map<string, Work>();
  readonly known = new KnownChanges();
  #isClosing = false;

  constructor(parts: ConvergenceParts) {
    this.#parts = parts;
  }

  /** Resolves when there is nothing left to do. @throws what ended an awaited start or stop */
  async converge(sandboxId: string, options: ConvergeOptions = {}): Promise<void> {
    await this.#converge(sandboxId, options, () => false);
  }

  /** As `converge`, unless the answer to a step in progress covers the change already. */
  async handleChange(change: ReportedChange): Promise<void> {
    await this.#converge(change.id, {}, () => this.known.has(change));
  }

  async #converge(sandboxId: string, options: ConvergeOptions, isDone: () => boolean): Promise<void> {
    // Work on this sandbox that pauses before it tries again goes on at once: what was in its way may be gone.
    this.#works.get(sandboxId)?.backOff.wake();
    await this.#mutex.run(sandboxId, async () => {
      if (isDone()) return;
      const work: Work = { backOff: new BackOff(), step: new AbortController() };
      this.#works.set(sandboxId, work);
      try {
        await this.#loop(sandboxId, work, options);
      } finally {
        this.#works.delete(sandboxId);
      }
    });
  }

  /** The desired state has changed: aborts the step in progress and converges in the background. */
  convergeSoon(sandboxId: string, options: Pick<ConvergeOptions, 'isNew'> = {}): void {
    // Another server may have seen a new record first and be creating the sandbox already; that is not interrupted.
    if (options.isNew !== true) this.interrupt(sandboxId);
    // The desired state is stored before its handler continues: concurrent work may have removed the sandbox by now.
    const isDone = () => this.known.isRemoved(sandboxId);
    this.#converge(sandboxId, options, isDone).catch((error: unknown) => {
      // A start that failed says so on its record.
      this.#parts.logger.info({ sandboxId, err: error }, 'a sandbox did not get where it should be');
    });
  }

  /** Converges in the background without aborting the step in progress; a failure is retried with the next look. */
  refresh(sandboxId: string): void {
    this.converge(sandboxId).catch((error: unknown) => {
      this.#parts.logger.info({ sandboxId, err: error }, 'a sandbox could not be brought up to date yet');
    });
  }

  /** The next change that this server stores for the sandbox. */
  nextChange(sandboxId: string): NextChange {
    return new NextChange(this.#changes, sandboxId);
  }

  /** Aborts the step in progress, because the desired state has changed. */
  interrupt(sandboxId: string): void {
    const work = this.#works.get(sandboxId);
    work?.step.abort(new Error('something else is wanted'));
    work?.backOff.wake();
  }

  /** Nothing is tried again; resolves when what is under way is over. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const { backOff } of this.#works.values()) backOff.wake();
    await this.#mutex.whenIdle();
  }

  async #loop(sandboxId: string, work: Work, options: ConvergeOptions): Promise<void> {
    const { database, orchestrator } = this.#parts;
    let answered: Answered | undefined;
    for (let isFirst = true; !this.#isClosing || isFirst; isFirst = false) {
      // Registered before the record is read, so that a later change of the desired state ends the step.
      work.step = new AbortController();
      const record = await getSandbox(database, sandboxId);
      // A sandbox that was never ours is none of our business.
      if (record === undefined) return;
      try {
        // The reconciler may have had a turn before us, and then it is there by now.
        const isNew = isFirst && options.isNew === true && record.observed === 'starting';
        // What is to go is removed, whether it is there or not.
        const isToGo = record.desired === 'removed' && answered === undefined;
        const isAsked = answered === undefined && !isNew && !isToGo;
        const report = isAsked ? await orchestrator.get(sandboxId, within(ASK_TIMEOUT_MS)) : answered?.report;
        const sequence = isAsked ? report?.sequence : answered?.sequence;
        answered = undefined;
        const decision = isToGo ? 'remove' : decide(record, report);
        if (report !== undefined && decision !== 'remove')
          await updateEngine(this.#parts, record, report, decision);
        if (decision === 'nothing') return this.known.note(sandboxId, sequence);
        if (decision === 'note' || decision === 'lost') {
          const now = await this.#note(record, report ?? lostReport(record));
          if (now === undefined || !isUnderWay(now)) return this.known.note(sandboxId, sequence);
        } else answered = await this.#act(decision, record, report, work, options);
      } catch (error) {
        answered = undefined;
        if (work.step.signal.aborted) continue;
        // A sandbox in a final state is looked at again when the engine is back.
        if (options.isAwaited === true || !mayPass(error) || !isUnderWay(record)) throw error;
        await this.#noteWaiting(record, error);
        await work.backOff.wait();
      }
    }
  }

  async #act(
    decision: Exclude<Decision, 'note' | 'lost' | 'nothing'>,
    record: SandboxRecord,
    report: SandboxReport | undefined,
    work: Work,
    options: ConvergeOptions,
  ): Promise<Answered | undefined> {
    const step = work.step;
    await using claim = await this.#parts.claims.take(record, () => step.abort(new Error('it changed')));
    // Another server is at it; what it leaves to do is done by us.
    if (claim === undefined) {
      await work.backOff.wait();
      return undefined;
    }
    this.#parts.logger.debug({ sandboxId: record.id, decision }, 'bringing a sandbox where it should be');
    if (decision === 'remove') return await this.#remove(record);
    const seen =
      decision === 'start'
        ? await this.#bringUp(record, report, step.signal, options)
        : await this.#bringDown(record);
    return seen && { report: seen, sequence: seen.sequence };
  }

  async #bringUp(
    record: SandboxRecord,
    report: SandboxReport | undefined,
    interrupted: AbortSignal,
    options: ConvergeOptions,
  ): Promise<SandboxReport> {
    const deadline = within(Math.max(deadlineOf(record) - Date.now(), 0));
    try {
      interrupted.throwIfAborted();
      await this.#parts.ports.open(record.id, record.ports, this.#ingressOf(record));
      const signal = AbortSignal.any([interrupted, deadline]);
      const running = await this.#startInOrchestrator(record, report, options, signal);
      await this.#note(record, running);
      await this.#forgetRegistry(record);
      return running;
    } catch (error) {
      await this.#forgetRun(record.id);
      if (interrupted.aborted) throw error;
      if (!deadline.aborted && options.isAwaited !== true && mayPass(error)) throw error;
      throw await this.#fail(record, deadline.aborted ? tooLate(record, error) : error);
    } finally {
      this.progress.forget(record.id);
    }
  }

  async #startInOrchestrator(
    record: SandboxRecord,
    report: SandboxReport | undefined,
    { onProgress = ignoreProgress }: ConvergeOptions,
    signal: AbortSignal,
  ): Promise<SandboxReport> {
    const { orchestrator } = this.#parts;
    const reportProgress = (progress: Progress) => {
      this.progress.note(record.id, progress);
      onProgress(progress);
    };
    if (report !== undefined) {
      reportProgress({ message: STARTING_MESSAGE, done: null, total: null });
      try {
        return await orchestrator.start(record.id, signal);
      } catch (error) {
        // What was seen was on its way out, as a create is that was cut off.
        if (!PlatformError.is(error, 'sandbox_not_found')) throw error;
      }
    }
    const request = await this.#place(record, signal);
    const noteFetch = ({ message, doneBytes, totalBytes }: FetchProgress) =>
      reportProgress({ message, done: doneBytes, total: totalBytes });
    try {
      return await orchestrator.create(request, noteFetch, signal);
    } catch (error) {
      // It left nothing there, so another node may make it.
      if (request.node !== undefined && PlatformError.is(error, 'insufficient_capacity'))
        await amend(this.#parts.database, record, () => ({ node: null }));
      throw error;
    }
  }

  /** The node is stored before it is asked, so that a create whose answer is lost is not repeated on another node. */
  async #place(record: SandboxRecord, signal: AbortSignal): Promise<NewOrchestratorSandbox> {
    const { database, orchestrator } = this.#parts;
    const request = await toEngineRequest(this.#parts, record);
    const chosen = record.node ?? (await orchestrator.place(request, signal));
    if (chosen === null) return request;
    const placed = await amend(database, record, ({ node }) => ({ node: node ?? chosen }));
    return { ...request, node: placed?.node ?? chosen };
  }

  async #fail(record: SandboxRecord, thrown: unknown): Promise<unknown> {
    const error = unavailableIfOutOfFiles(thrown);
    const message = error instanceof Error ? error.message : String(error);
    const code = PlatformError.is(error) ? error.code : 'internal';
    if (code === 'internal') this.#parts.logger.error({ sandboxId: record.id, err: error }, 'a start failed');
    await noteFailure(this.#parts.database, record, {
      code,
      message: code === 'internal' ? 'the server met a bug; its log says more' : message,
    });
    this.#changes.emit(record.id);
    return error;
  }

  /** @returns undefined when the orchestrator does not say */
  async #bringDown(record: SandboxRecord): Promise<SandboxReport | undefined> {
    await this.#forgetRun(record.id);
    try {
      const report = await this.#parts.orchestrator.stop(
        record.id,
        { graceMs: STOP_GRACE_MS },
        within(STOP_TIMEOUT_MS),
      );
      await this.#note(record, report);
      return report;
    } catch (error) {
      if (isTimeout(error)) throw notInTime('stop', STOP_TIMEOUT_MS, error);
      if (!PlatformError.is(error, 'sandbox_not_found')) throw error;
      await this.#note(record, lostReport(record));
      return undefined;
    }
  }

  async #remove({ id }: SandboxRecord): Promise<Answered> {
    await this.#forgetRun(id);
    const { sequence } = await this.#parts.orchestrator.remove(id, within(REMOVE_TIMEOUT_MS));
    await closeRun(this.#parts.database, id, new Date().toISOString(), 'removed');
    this.known.noteRemoved(id);
    return { report: undefined, sequence };
  }

  async #note(record: SandboxRecord, report: SandboxReport): Promise<SandboxRecord | undefined> {
    const now = isNoted(record, report) ? record : await observe(this.#parts.database, record, report);
    // Also when another server stored it: a caller of this server may wait for it.
    this.#changes.emit(record.id);
    if (now?.observed === 'running') await this.#openPorts(now);
    else if (report.state !== 'running') await this.#forgetRun(record.id);
    return now;
  }

  /** Says on the record why it does not run yet. */
  async #noteWaiting(record: SandboxRecord, error: unknown): Promise<void> {
    if (record.observed !== 'starting') return;
    const isFull = PlatformError.is(error, 'insufficient_capacity');
    const statusReason = isFull ? 'insufficient_capacity' : 'scheduling';
    if (record.statusReason === statusReason) return;
    await amend(this.#parts.database, record, ({ observed }) =>
      observed === 'starting' ? { statusReason } : {},
    );
    this.#changes.emit(record.id);
  }

  /** A password that came with the create was for that create. */
  async #forgetRegistry(record: SandboxRecord): Promise<void> {
    const { database, sealer } = this.#parts;
    const secrets = openSecrets(sealer, record);
    if (secrets.registry?.mode !== 'inline') return;
    const rest = sealSecrets(sealer, record.id, { ...secrets, registry: null });
    await amend(database, record, () => ({ secrets: rest }));
  }

  /** A sandbox keeps running when one of its ports was taken while this server was down. */
  async #openPorts(record: SandboxRecord): Promise<void> {
    const { id, ports } = record;
    try {
      await this.#parts.ports.open(id, ports, this.#ingressOf(record));
    } catch (error) {
      this.#parts.logger.error(
        { sandboxId: id, err: error },
        'a port of a running sandbox could not be opened',
      );
    }
  }

  #ingressOf({ id, spec }: SandboxRecord): MayEnter {
    return ingressOf(spec.network, (connection) => this.#parts.refused.note(id, connection));
  }

  async #forgetRun(sandboxId: string): Promise<void> {
    this.#parts.channels.forget(sandboxId);
    this.#parts.onRunEnded(sandboxId);
    await this.#parts.ports.close(sandboxId);
  }
}

/** Whether the sandbox has not reached its desired state yet. */
function isUnderWay({ desired, observed, removedAt }: SandboxRecord): boolean {
  return removedAt !== null || desired === 'restarted' || observed === 'starting' || observed === 'stopping';
}

function within(milliseconds: number): AbortSignal {
  return AbortSignal.timeout(milliseconds);
}

function ignoreProgress(): void {
  // This start has no listener.
}
