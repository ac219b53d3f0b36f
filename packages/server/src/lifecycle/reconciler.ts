import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract';
import type { Logger } from 'pino';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import type { Database } from '../store/database.ts';
import { findRemoved, listSandboxes, markUnavailable } from '../store/sandboxes.ts';
import type { EngineHealth } from './engine-health.ts';
import type { Lifecycle } from './lifecycle.ts';

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2000;

export interface ReconcilerParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly lifecycle: Lifecycle;
  readonly health: EngineHealth;
  readonly logger: Logger;
}

/** Follows the orchestrator for as long as the server runs, and keeps the records in agreement with it. */
export class Reconciler {
  readonly #parts: ReconcilerParts;
  /** Sandboxes being looked at; the value says whether they changed again meanwhile. */
  readonly #underWay = new Map<string, boolean>();

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  async run(signal: AbortSignal): Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    while (!signal.aborted) {
      try {
        await this.#follow(signal, () => (retryMs = FIRST_RETRY_MS));
      } catch (error) {
        if (signal.aborted) return;
        await this.#noteAbsence(error);
      }
      await delay(retryMs, undefined, { signal }).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    }
  }

  /** Returns or throws when the orchestrator goes away. */
  async #follow(signal: AbortSignal, onConnected: () => void): Promise<void> {
    const { orchestrator, health } = this.#parts;
    const description = await orchestrator.describe(signal);
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
      for (;;) {
        const { value, done } = await next;
        if (done === true) return;
        next = changes.next();
        next.catch(() => undefined);
        if (value === null) await this.#reconcileAll(signal);
        else void this.#reconcileOne(value, signal);
      }
    } finally {
      over.abort();
    }
  }

  /** Begins with every sandbox; none waits for another, because one of them may be busy for minutes. */
  async #reconcileAll(signal: AbortSignal): Promise<void> {
    const { database, orchestrator } = this.#parts;
    const reports = await orchestrator.list(signal);
    const known = new Set((await listSandboxes(database)).map(({ id }) => id));
    const unknown = reports.map(({ id }) => id).filter((id) => !known.has(id));
    const removed = await findRemoved(database, unknown);
    for (const id of [...known, ...removed.map((record) => record.id)]) void this.#reconcileOne(id, signal);
  }

  async #reconcileOne(sandboxId: string, signal: AbortSignal): Promise<void> {
    if (this.#underWay.has(sandboxId)) {
      this.#underWay.set(sandboxId, true);
      return;
    }
    do {
      this.#underWay.set(sandboxId, false);
      try {
        await this.#parts.lifecycle.reconcile(sandboxId, signal);
      } catch (error) {
        // The end of the stream of changes tells the same, and everything is looked at again afterwards.
        if (signal.aborted || PlatformError.is(error, 'orchestrator_unreachable')) break;
        this.#parts.logger.error({ sandboxId, err: error }, 'a sandbox could not be reconciled');
      }
    } while (this.#underWay.get(sandboxId) === true);
    this.#underWay.delete(sandboxId);
  }

  async #noteAbsence(error: unknown): Promise<void> {
    const { health, logger, database } = this.#parts;
    const reason = error instanceof Error ? error.message : String(error);
    if (health.noteAbsence(reason)) logger.warn({ err: error }, 'the engine is away');
    try {
      await markUnavailable(database);
    } catch (failure) {
      logger.error({ err: failure }, 'the store could not be written');
    }
  }
}
