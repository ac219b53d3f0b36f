import { ChannelError, PlatformError, type DetachedState } from '@svc/contract';
import type { Logger } from 'pino';
import { repeatEvery, type BackgroundTask } from '../tasks/background.ts';
import type { ChannelPool } from '../orchestrator/channel-pool.ts';
import type { Database } from '../store/database.ts';
import {
  findProcess,
  getRuns,
  listSandboxesWithUnfinished,
  listUnfinished,
  noteProcess,
  removeProcess,
  type ProcessChange,
  type ProcessRecord,
} from '../store/processes.ts';
import { getSandbox } from '../store/sandboxes.ts';
import { eachLimited } from '../tasks/each-limited.ts';
import { describeEndWithRun, describeExit, isOwnEnd, UNSEEN_END } from './describe-exit.ts';
import { explainFailure, isTimeout } from './explain-failure.ts';

const CHECK_MS = 5000;
const MAX_AT_ONCE = 8;
/** A process that the sandbox does not list may be starting for this long. */
const START_MS = 60_000;
const LIST_MS = 10_000;

interface ProcessReconcilerParts {
  readonly database: Database;
  readonly channels: Pick<ChannelPool, 'get' | 'forget'>;
  readonly logger: Logger;
}

/**
 * Keeps the records of processes up to date. svc-init knows them while their sandbox runs; the exit that it reports is stored
 * before the run ends, and the end of a run ends its processes.
 */
export class ProcessReconciler implements BackgroundTask {
  readonly #parts: ProcessReconcilerParts;

  constructor(parts: ProcessReconcilerParts) {
    this.#parts = parts;
  }

  async run(signal: AbortSignal): Promise<void> {
    const check = async () => {
      const sandboxes = await listSandboxesWithUnfinished(this.#parts.database);
      await eachLimited(sandboxes, MAX_AT_ONCE, (id) => this.refresh(id));
    };
    await repeatEvery(CHECK_MS, 'looking after processes', check, this.#parts.logger).run(signal);
  }

  /** Brings what is known about the processes of a sandbox up to date, as far as it can be reached. */
  async refresh(sandboxId: string): Promise<void> {
    await this.#refresh(sandboxId, ignoreUnreachable);
  }

  /** The record after a look at the sandbox. */
  async find(sandboxId: string, id: string): Promise<ProcessRecord | undefined> {
    await this.refresh(sandboxId);
    return await findProcess(this.#parts.database, sandboxId, id);
  }

  /** Like `find`, for calls that need the process itself. @throws PlatformError when the sandbox cannot be asked */
  async findReachable(sandboxId: string, id: string): Promise<ProcessRecord | undefined> {
    await this.#refresh(sandboxId, (error) => {
      throw explainFailure(error, { process: id });
    });
    return await findProcess(this.#parts.database, sandboxId, id);
  }

  /**
   * Like `refresh`, for calls that read from the process: a sandbox that cannot be reached may be back in a moment, but one
   * that is there and does not answer would be waited for in vain. @throws PlatformError `unavailable` in that case
   * @returns whether the sandbox was asked, so that the record says what is true now
   */
  async refreshForReading(sandboxId: string, id: string): Promise<boolean> {
    let wasAsked = true;
    await this.#refresh(sandboxId, (error) => {
      wasAsked = false;
      if (!isTimeout(error) && !PlatformError.is(error, 'unavailable')) return ignoreUnreachable(error);
      throw explainFailure(error, { process: id });
    });
    return wasAsked;
  }

  async #refresh(sandboxId: string, onUnreachable: (error: unknown) => undefined): Promise<void> {
    const { database } = this.#parts;
    const records = await listUnfinished(database, sandboxId);
    if (records.length === 0) return;
    const runs = await getRuns(
      database,
      records.map(({ runId }) => runId),
    );
    const living: ProcessRecord[] = [];
    for (const record of records) {
      const run = runs.get(record.runId);
      if (run?.ended_at === null) living.push(record);
      else if (run !== undefined) {
        const requestedBy = (await getSandbox(database, sandboxId))?.requestedBy ?? null;
        await noteProcess(database, record.id, {
          endedAt: run.ended_at,
          exit: describeEndWithRun(run, requestedBy),
        });
      }
    }
    if (living.length === 0) return;
    const states = await this.#ask(sandboxId).catch(onUnreachable);
    if (states === undefined) return;
    for (const record of living) await this.#note(record, states.get(record.id));
  }

  async #ask(sandboxId: string): Promise<ReadonlyMap<string, DetachedState>> {
    const channel = await this.#parts.channels.get(sandboxId);
    const states = await channel.detached.list(AbortSignal.timeout(LIST_MS));
    return new Map(states.map((state) => [state.key, state]));
  }

  async #note(record: ProcessRecord, state: DetachedState | undefined): Promise<void> {
    const { database } = this.#parts;
    if (state !== undefined) return await noteProcess(database, record.id, changeOf(record, state));
    if (record.pid !== null) {
      const endedAt = new Date().toISOString();
      return await noteProcess(database, record.id, { endedAt, exit: UNSEEN_END });
    }
    // The server that wrote it down was killed before it could start it.
    if (Date.parse(record.startedAt) < Date.now() - START_MS) await removeProcess(database, record.id);
    return undefined;
  }
}

/** A sandbox that cannot be asked now leaves the record as it is. */
function ignoreUnreachable(error: unknown): undefined {
  if (error instanceof ChannelError || PlatformError.is(error) || isTimeout(error)) return undefined;
  throw error;
}

/** What a state says that the record does not. */
export function changeOf(record: ProcessRecord, state: DetachedState): ProcessChange {
  const { pid, end, startedAtMs, stdout, stderr } = state;
  return {
    ...(record.pid === pid ? {} : { pid, startedAt: new Date(startedAtMs).toISOString() }),
    ...(record.stdoutBytes === stdout.to ? {} : { stdoutBytes: stdout.to }),
    ...(record.stderrBytes === stderr.to ? {} : { stderrBytes: stderr.to }),
    ...(end === null || !isOwnEnd(end)
      ? {}
      : { endedAt: new Date(end.atMs).toISOString(), exit: describeExit(end) }),
  };
}
