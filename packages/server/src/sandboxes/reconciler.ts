import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract';
import { pause } from '@svc/contract/node-pause';
import type { NodeChange, ReportedChange } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import type { Nodes } from '../orchestrator/nodes.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import type { Database } from '../store/database.ts';
import { findSandboxes, listSandboxesIn, type SandboxRecord } from '../store/sandboxes.ts';
import { decide, isNoted } from './decide.ts';
import type { EngineHealth } from '../orchestrator/engine-health.ts';
import type { Convergence } from './convergence.ts';
import { markUnavailable, requireDecisions } from '../store/outages.ts';
import { deadlineOf } from './deadlines.ts';
import { noteFailure } from './observe.ts';

const FIRST_RETRY_MS = 50;
/** Connecting to a socket is cheap, and all calls wait for the engine. */
const LAST_RETRY_MS = 200;
const SWEEP_MS = 500;
/** Finds what was not reported: a sandbox that another server removed, a change that was lost. */
const LOOK_AGAIN_MS = 30_000;
/** A query names this many ids at most. */
const IDS_AT_ONCE = 500;

export interface ReconcilerParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly nodes: Nodes;
  readonly convergence: Convergence;
  readonly health: EngineHealth;
  readonly recoveryMs: number;
  /** Logs what the engine has without a row in the store. */
  readonly logOrphans: (signal: AbortSignal) => Promise<void>;
  readonly logger: Logger;
}

/** Follows the orchestrator for as long as the server runs, and keeps the records in agreement with it. */
export class Reconciler {
  readonly #parts: ReconcilerParts;
  /** Sandboxes being looked at, and what changed about them meanwhile. */
  readonly #underWay = new Map<string, ReportedChange | null>();

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  async run(signal: AbortSignal): Promise<void> {
    const sweeping = this.#sweep(signal);
    let retryMs = FIRST_RETRY_MS;
    while (!signal.aborted) {
      try {
        await this.#follow(signal, () => (retryMs = FIRST_RETRY_MS));
      } catch (error) {
        if (signal.aborted) break;
        await this.#noteAbsence(error);
      }
      await delay(retryMs, undefined, { signal }).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    }
    await sweeping;
  }

  /** What only the clock changes. */
  async #sweep(signal: AbortSignal): Promise<void> {
    let lookAgainAt = Date.now() + LOOK_AGAIN_MS;
    const { database, health, logger } = this.#parts;
    while (!signal.aborted) {
      await pause(SWEEP_MS, signal);
      if (signal.aborted) return;
      try {
        // A server that has just started asks the engine before it asks users for decisions.
        if (health.isKnown) await requireDecisions(database);
        await failOverdue(database);
        if (!health.current.isHealthy || Date.now() < lookAgainAt) continue;
        lookAgainAt = Date.now() + LOOK_AGAIN_MS;
        await this.#reconcileAll(signal, 'what differs');
      } catch (error) {
        // An engine that is away says so by the end of its changes too.
        if (signal.aborted || PlatformError.is(error, 'orchestrator_unreachable')) continue;
        logger.error({ err: error }, 'sandboxes could not be looked at');
      }
    }
  }

  /** Returns or throws when the orchestrator goes away. */
  async #follow(signal: AbortSignal, onConnected: () => void): Promise<void> {
    const { orchestrator, nodes, health } = this.#parts;
    const description = await nodes.describe(signal);
    const over = new AbortController();
    const changes = orchestrator.changes(AbortSignal.any([signal, over.signal]))[Symbol.asyncIterator]();
    try {
      // Asked for before the list is read, so that no change falls between.
      let next = changes.next();
      // Looked at below, after the list; until then a failure must not count as unhandled.
      next.catch(() => undefined);
      await this.#reconcileAll(signal);
      health.noteDescription(description);
      onConnected();
      void this.#tellOrphans(signal);
      for (;;) {
        const { value, done } = await next;
        if (done === true) return;
        next = changes.next();
        next.catch(() => undefined);
        if (value === null) await this.#reconcileAll(signal);
        else if ('node' in value) await this.#noteNode(value, signal);
        else void this.#reconcileOne(value, signal);
      }
    } finally {
      over.abort();
    }
  }

  /** Once per connection; nothing waits for it. */
  async #tellOrphans(signal: AbortSignal): Promise<void> {
    const { logOrphans, logger } = this.#parts;
    await logOrphans(signal).catch((error: unknown) => {
      if (!signal.aborted) logger.debug({ err: error }, 'it is not known yet whether there are orphans');
    });
  }

  /** Begins with every sandbox that is not as it should be; none waits for another, because one may be busy for minutes. */
  async #reconcileAll(signal: AbortSignal, which: 'all' | 'what differs' = 'all'): Promise<void> {
    const { database, orchestrator, convergence, health } = this.#parts;
    if (which === 'all') convergence.known.clear();
    const reports = new Map((await orchestrator.list(signal)).map((report) => [report.id, report]));
    const records = new Map<string, SandboxRecord>();
    const note = (found: readonly SandboxRecord[]) =>
      found.forEach((record) => records.set(record.id, record));
    note(await listSandboxesIn(database, NOT_AT_REST));
    const others = [...reports.keys()].filter((id) => !records.has(id));
    for (let at = 0; at < others.length; at += IDS_AT_ONCE) {
      note(await findSandboxes(database, others.slice(at, at + IDS_AT_ONCE)));
    }
    for (const record of records.values()) {
      const report = reports.get(record.id);
      // Its node says nothing, which does not mean that it is gone.
      if (report === undefined && health.problemOf(record.node) !== null) continue;
      if (decide(record, report) === 'nothing') continue;
      if (which === 'what differs' && isNoted(record, report)) continue;
      void this.#reconcileOne({ id: record.id }, signal);
    }
  }

  async #reconcileOne(change: ReportedChange, signal: AbortSignal): Promise<void> {
    const { id } = change;
    if (this.#underWay.has(id)) {
      // A full look is not replaced by a change that may be known already.
      const waiting = this.#underWay.get(id);
      this.#underWay.set(id, waiting && waiting.sequence === undefined ? waiting : change);
      return;
    }
    for (let next: ReportedChange | null = change; next !== null; next = this.#underWay.get(id) ?? null) {
      this.#underWay.set(id, null);
      try {
        await this.#parts.convergence.handleChange(next);
      } catch (error) {
        // The stream of changes ends for the same reason, and everything is reconciled afterwards.
        if (signal.aborted || PlatformError.is(error, 'orchestrator_unreachable')) break;
        this.#parts.logger.error({ sandboxId: id, err: error }, 'a sandbox could not be reconciled');
      }
    }
    this.#underWay.delete(id);
  }

  /** Its sandboxes are unavailable, or to be looked at again; those of other nodes are not concerned. */
  async #noteNode({ node, problem }: NodeChange, signal: AbortSignal): Promise<void> {
    const { health, logger, database, recoveryMs } = this.#parts;
    health.noteNode(node, problem);
    if (problem === null) return await this.#reconcileAll(signal);
    logger.warn({ node, problem }, 'a node is away');
    await markUnavailable(database, recoveryMs, node);
  }

  async #noteAbsence(error: unknown): Promise<void> {
    const { health, logger, database, recoveryMs } = this.#parts;
    const reason = error instanceof Error ? error.message : String(error);
    if (health.noteAbsence(reason)) logger.warn({ err: error }, 'the engine is away');
    try {
      await markUnavailable(database, recoveryMs);
    } catch (failure) {
      logger.error({ err: failure }, 'the store could not be written');
    }
  }
}

const NOT_AT_REST = [
  'starting',
  'running',
  'temporarily_unavailable',
  'recovery_decision_required',
  'stopping',
] as const;

/** What has not arrived where it should be, although there was time enough, has failed. */
async function failOverdue(db: Database): Promise<void> {
  const now = Date.now();
  for (const record of await listSandboxesIn(db, ['starting', 'stopping'])) {
    if (deadlineOf(record) > now) continue;
    const isFull = record.statusReason === 'insufficient_capacity';
    const verb = record.observed === 'starting' ? 'start' : 'stop';
    await noteFailure(db, record, {
      code: isFull ? 'insufficient_capacity' : 'unavailable',
      message: isFull
        ? 'there was no room for it in all the time it waited; free some, and start it again'
        : `the engine did not ${verb} it in time; try again`,
    });
  }
}
