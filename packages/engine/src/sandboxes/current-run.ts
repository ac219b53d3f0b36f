import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxState } from '@svc/contract/orchestrator';
import type { EndReason } from '../client/engine-api.ts';
import type { NetworkLog } from '../events/network-log.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { ChangeMutex } from './change-mutex.ts';
import { describeEnd, isClean, type RunOutcome } from './describe-end.ts';
import type { StoredRecord } from './stored-record.ts';
import type { Kit } from './kit.ts';
import { noteStop } from './note-stop.ts';
import type { Run } from './run.ts';
import { releaseRun } from './start-run.ts';
import { StepTimer } from './step-timer.ts';

const GONE_CHECK_MS = 5;

interface CurrentRunParts {
  readonly kit: Kit;
  readonly runtime: Runtime;
  readonly stored: StoredRecord;
  readonly mutex: ChangeMutex;
  readonly networkLog: NetworkLog;
  /** A run has ended, with or without a request, and the record says so. */
  readonly onEnded: () => void;
}

/**
 * The run of a sandbox, if it has one, and how it ends: on request, because its main process exits, at a start that failed, or with an engine that was killed.
 * `end`, `failStart`, `endAfterRestart` and `discard` are called with the sandbox's mutex held.
 */
export class CurrentRun {
  readonly #parts: CurrentRunParts;
  #run: Run | undefined;
  /** Why the run that is being stopped ends; kept when that takes several attempts. */
  #ending: RunOutcome | undefined;

  constructor(parts: CurrentRunParts) {
    this.#parts = parts;
  }

  get value(): Run | undefined {
    return this.#run;
  }

  /** Makes `run` the run of the sandbox; when it ends without a request, the sandbox is stopped. */
  hold(run: Run): void {
    this.#run = run;
    const { kit, stored, mutex } = this.#parts;
    run.ended.promise
      .then((end) =>
        mutex.run(async () => {
          if (this.#run !== run || stored.value.state !== 'running') return;
          await this.end(end, end.by === 'death' ? 0 : kit.limits.stopGraceMs);
        }),
      )
      .catch((error: unknown) =>
        kit.logger.error({ error, handle: stored.value.handle }, 'could not end the run'),
      );
  }

  /** When this fails half-way the sandbox stays `stopping`, and the next call goes on with the same reason. */
  async end(outcome: RunOutcome, graceMs = this.#parts.kit.limits.stopGraceMs): Promise<void> {
    const { kit, stored, runtime, mutex } = this.#parts;
    const run = this.#run;
    const timer = new StepTimer();
    this.#ending ??= outcome;
    if (stored.value.state === 'running') await stored.move('stopping', {});
    if (run === undefined) await releaseRun(kit, stored.value, runtime, undefined, timer);
    else {
      const reason = this.#ending.by === 'request' ? this.#ending.reason : null;
      const isAlive = () => runtime.isAlive(stored.value.handle);
      const deadline = () => mutex.deadline;
      if (run.link.isConnected && graceMs > 0)
        await timer.time('processes', () => shutDown(run, { graceMs, reason, isAlive, deadline }));
      await this.#release(run, timer);
    }
    noteStop(kit.logger, stored.journal, stored.value.handle, timer.result());
    await this.#finish(this.#ending);
    this.#ending = undefined;
  }

  /** `run`: undefined when the start failed before it had one. */
  async failStart(run: Run | undefined, error: unknown, to: SandboxState = 'failed'): Promise<void> {
    const { kit, stored, networkLog } = this.#parts;
    const message = error instanceof Error ? error.message : String(error);
    // The removal or the next engine releases the rest; the sandbox must not stay `starting` for it.
    if (run !== undefined) await this.#release(run).catch(this.#logUndo);
    const now = new Date().toISOString();
    const end = { reason: 'start_failed', message, exitCode: null } as const;
    const base = stored.value.run ?? { bootId: kit.bootId, token: '', startedAt: now, timings: {} };
    await stored.move(to, { run: { ...base, slot: null, endedAt: now, end } }, message);
    networkLog.wake();
  }

  /** Ends a start or stop that a killed engine left half-way, or a run that did not outlive it. */
  async endAfterRestart(): Promise<void> {
    const { kit, stored, runtime } = this.#parts;
    const { state, run } = stored.value;
    if (state === 'starting') {
      await releaseRun(kit, stored.value, runtime).catch(this.#logUndo);
      // `stopped`, not `failed`: nothing is wrong with the sandbox, and it can be started again.
      const error = new Error('the engine was restarted during the start; start it again');
      return await this.failStart(undefined, error, 'stopped');
    }
    if (run !== null && run.bootId !== kit.bootId)
      return await this.end({ by: 'request', reason: 'host_restart' });
    await this.end(
      state === 'stopping' ? { by: 'request', reason: 'stopped' } : { by: 'death', outOfMemory: false },
    );
  }

  /** Releases everything without a change of the record: the sandbox is being removed. */
  async discard(): Promise<void> {
    const { kit, stored, runtime } = this.#parts;
    await this.#run?.close();
    this.#run = undefined;
    await releaseRun(kit, stored.value, runtime);
  }

  async #release(run: Run, timer?: StepTimer): Promise<void> {
    const { kit, stored, runtime } = this.#parts;
    await run.close();
    run.main.finish();
    this.#run = undefined;
    await releaseRun(kit, stored.value, runtime, run.slot, timer);
  }

  async #finish(outcome: RunOutcome): Promise<void> {
    const { stored, networkLog, onEnded } = this.#parts;
    const end = describeEnd(outcome, stored.value);
    const { run } = stored.value;
    const ended = run === null ? null : { ...run, slot: null, endedAt: new Date().toISOString(), end };
    await stored.move(isClean(end) ? 'stopped' : 'failed', { run: ended }, end.message);
    networkLog.wake();
    onEnded();
  }

  readonly #logUndo = (error: unknown): void =>
    this.#parts.kit.logger.error(
      { error, handle: this.#parts.stored.value.handle },
      'could not undo a start',
    );
}

interface ShutDown {
  readonly graceMs: number;
  readonly reason: EndReason | null;
  readonly isAlive: () => Promise<boolean>;
  /** When a caller in a hurry wants it to end, by `performance.now`. */
  readonly deadline: () => number;
}

/** Asks svc-init to end all processes; returns when it has, or at the end of the grace period or of the caller's deadline. */
async function shutDown(run: Run, { graceMs, reason, isAlive, deadline }: ShutDown): Promise<void> {
  run.wake();
  run.link.notify('svc.shutdown', { grace_ms: graceMs, reason });
  const end = performance.now() + graceMs + 1000;
  while (performance.now() < Math.min(end, deadline())) {
    const isGone = !run.link.isConnected && !(await isAlive());
    if (isGone) return await run.link.drain();
    await delay(GONE_CHECK_MS);
  }
}
