import { PlatformError } from '@svc/contract';
import type { Logger } from 'pino';
import type { ChannelPool } from '../channels/channel-pool.ts';
import type { Progress } from '../dispatch/dispatch.ts';
import type { Orchestrator, SandboxReport } from '../orchestrator/orchestrator.ts';
import type { PortForwarder } from '../ports/port-forwarder.ts';
import type { PortMapping } from '../ports/port-mapping.ts';
import type { Database } from '../store/database.ts';
import {
  findSandbox,
  getSandbox,
  replaceSandbox,
  updateSandbox,
  type NewSandbox,
  type SandboxRecord,
} from '../store/sandboxes.ts';
import { decide } from './decide.ts';
import { observe } from './observe.ts';
import { Turns } from './turns.ts';

const START_TIMEOUT_MS = 15 * 60_000;
const STOP_GRACE_MS = 10_000;
const STOP_TIMEOUT_MS = 60_000;

export interface LifecycleParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly channels: ChannelPool;
  readonly ports: PortForwarder;
  /** Told when a run is over, so that nothing of it is used in the next one. */
  readonly onRunEnded: (sandboxId: string) => void;
  readonly logger: Logger;
}

/**
 * Starts and stops sandboxes so that record and reality agree, whatever fails in between.
 * - What is wanted is written down before the orchestrator is asked. Whoever comes after a crash finishes or undoes it.
 * - Work on one sandbox never overlaps. It runs to its end also when the caller goes away.
 * - A start that fails leaves the sandbox wanted stopped; a stop that fails leaves it wanted stopped, and is repeated.
 */
export class Lifecycle {
  readonly #parts: LifecycleParts;
  readonly #turns = new Turns();

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
  }

  /** `config` undefined: from what is stored. Resolves when the sandbox runs and its channel answers. */
  async start(
    namespace: string,
    name: string,
    config: Pick<NewSandbox, 'spec' | 'ports'> | undefined,
    onProgress: (progress: Progress) => void,
  ): Promise<void> {
    await this.#turns.take(turnKey(namespace, name), async () => {
      const { database } = this.#parts;
      const stored = await findSandbox(database, namespace, name);
      if (stored === undefined && config === undefined) throw notFound(name);
      const isSame = stored !== undefined && (config === undefined || isSameConfig(stored, config));
      if (stored !== undefined && (await this.#isRunning(stored))) {
        if (isSame) return;
        const message = `Sandbox '${name}' is running with another configuration; stop it first`;
        throw new PlatformError('invalid_state_transition', message, { details: { state: 'running' } });
      }
      if (isSame) {
        await updateSandbox(database, stored.id, { desired: 'running', observed: 'starting' });
        await this.#bringUp({ ...stored, desired: 'running', observed: 'starting' }, onProgress);
        return;
      }
      // The first test above left only this case without a config.
      if (config === undefined) throw notFound(name);
      const record = await replaceSandbox(database, { namespace, name, ...config });
      if (stored !== undefined) await this.#discard(stored.id);
      await this.#bringUp(record, onProgress);
    });
  }

  async stop(namespace: string, name: string): Promise<void> {
    await this.#turns.take(turnKey(namespace, name), async () => {
      const record = await findSandbox(this.#parts.database, namespace, name);
      if (record === undefined) throw notFound(name);
      await updateSandbox(this.#parts.database, record.id, { desired: 'stopped' });
      await this.#bringDown({ ...record, desired: 'stopped' });
    });
  }

  /** Brings one record and what the orchestrator says to agreement. Repeating it changes nothing. */
  async reconcile(sandboxId: string, signal: AbortSignal): Promise<void> {
    const known = await getSandbox(this.#parts.database, sandboxId);
    // A sandbox that was never ours is none of our business.
    if (known === undefined) return;
    await this.#turns.take(turnKey(known.namespace, known.name), async () => {
      const record = await getSandbox(this.#parts.database, sandboxId);
      if (record === undefined) return;
      const report = await this.#parts.orchestrator.get(sandboxId, signal);
      await this.#converge(record, report);
    });
  }

  async whenIdle(): Promise<void> {
    await this.#turns.whenIdle();
  }

  async #converge(record: SandboxRecord, report: SandboxReport | undefined): Promise<void> {
    const decision = decide(record, report);
    if (decision !== 'nothing' && decision !== 'note') {
      this.#parts.logger.info({ sandboxId: record.id, decision }, 'reconciling a sandbox');
    }
    if (decision === 'start') await this.#bringUp(record, ignoreProgress);
    else if (decision === 'stop') await this.#bringDown(record);
    else if (decision === 'remove') await this.#discard(record.id);
    else if (decision === 'lost') await this.#note(record, lostReport(record));
    else if (decision === 'note' && report !== undefined) await this.#note(record, report);
  }

  async #isRunning(record: SandboxRecord): Promise<boolean> {
    if (record.desired !== 'running') return false;
    const { orchestrator } = this.#parts;
    const report = await orchestrator.get(record.id, AbortSignal.timeout(STOP_TIMEOUT_MS));
    if (report?.state !== 'running') return false;
    await this.#note(record, report);
    await this.#parts.channels.get(record.id);
    return true;
  }

  async #bringUp(record: SandboxRecord, onProgress: (progress: Progress) => void): Promise<void> {
    try {
      await this.#parts.ports.open(record.id, record.ports);
      const report = await this.#startInOrchestrator(record, onProgress);
      await this.#note(record, report);
      await this.#parts.channels.get(record.id);
    } catch (error) {
      await this.#forgetRun(record.id);
      const failureMessage = error instanceof Error ? error.message : String(error);
      await updateSandbox(this.#parts.database, record.id, {
        desired: 'stopped',
        observed: 'failed',
        failureMessage,
      });
      throw explainTimeout(error, 'start', START_TIMEOUT_MS);
    }
  }

  async #startInOrchestrator(
    record: SandboxRecord,
    onProgress: (progress: Progress) => void,
  ): Promise<SandboxReport> {
    const { orchestrator } = this.#parts;
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    const report = await orchestrator.get(record.id, signal);
    if (report?.state === 'running') return report;
    if (report === undefined) {
      await orchestrator.create(
        { id: record.id, spec: record.spec },
        ({ message, doneBytes, totalBytes }) => onProgress({ message, done: doneBytes, total: totalBytes }),
        signal,
      );
    }
    onProgress({ message: 'starting the sandbox', done: null, total: null });
    return await orchestrator.start(record.id, signal);
  }

  async #bringDown(record: SandboxRecord): Promise<void> {
    const signal = AbortSignal.timeout(STOP_TIMEOUT_MS);
    await this.#forgetRun(record.id);
    try {
      const report = await this.#parts.orchestrator.stop(record.id, { graceMs: STOP_GRACE_MS }, signal);
      await this.#note(record, report);
    } catch (error) {
      if (!PlatformError.is(error, 'sandbox_not_found')) throw explainTimeout(error, 'stop', STOP_TIMEOUT_MS);
      await this.#note(record, lostReport(record));
    }
  }

  /** Of a sandbox whose record says that it is removed: what is left now is removed by the next reconciliation. */
  async #discard(sandboxId: string): Promise<void> {
    await this.#forgetRun(sandboxId);
    try {
      await this.#parts.orchestrator.remove(sandboxId, AbortSignal.timeout(STOP_TIMEOUT_MS));
    } catch (error) {
      this.#parts.logger.warn({ sandboxId, err: error }, 'an old sandbox could not be removed yet');
    }
  }

  async #note(record: SandboxRecord, report: SandboxReport): Promise<void> {
    await observe(this.#parts.database, record, report);
    if (report.state === 'running') await this.#openPorts(record.id, record.ports);
    else await this.#forgetRun(record.id);
  }

  /** A sandbox that runs is not stopped because a port of it was taken while nobody looked. */
  async #openPorts(sandboxId: string, ports: readonly PortMapping[]): Promise<void> {
    try {
      await this.#parts.ports.open(sandboxId, ports);
    } catch (error) {
      this.#parts.logger.error({ sandboxId, err: error }, 'a port of a running sandbox could not be opened');
    }
  }

  async #forgetRun(sandboxId: string): Promise<void> {
    this.#parts.channels.forget(sandboxId);
    this.#parts.onRunEnded(sandboxId);
    await this.#parts.ports.close(sandboxId);
  }
}

export function notFound(name: string): PlatformError {
  return new PlatformError('sandbox_not_found', `Sandbox '${name}' not found in configuration`, {
    details: { sandbox: name },
  });
}

function explainTimeout(error: unknown, verb: string, timeoutMs: number): unknown {
  const isTimeout = error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError');
  if (!isTimeout) return error;
  const message = `the engine did not ${verb} it within ${timeoutMs / 1000} s; try again`;
  return new PlatformError('unavailable', message, { cause: error });
}

function turnKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

/** Specs are made by one function from checked fields, so equal ones have equal text. */
function isSameConfig(record: SandboxRecord, config: Pick<NewSandbox, 'spec' | 'ports'>): boolean {
  return (
    JSON.stringify(record.spec) === JSON.stringify(config.spec) &&
    JSON.stringify(record.ports) === JSON.stringify(config.ports)
  );
}

function lostReport(record: SandboxRecord): SandboxReport {
  const endedAt = new Date().toISOString();
  const wasWanted = record.desired === 'running';
  const message = wasWanted ? 'the engine no longer knows this sandbox' : 'it was stopped';
  return {
    id: record.id,
    state: wasWanted ? 'failed' : 'stopped',
    startedAt: record.startedAt,
    endedAt,
    end: { reason: wasWanted ? 'lost' : 'stopped', message },
  };
}

function ignoreProgress(): void {
  // Nobody waits for this start.
}
