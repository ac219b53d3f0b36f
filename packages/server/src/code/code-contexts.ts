import { randomUUID } from 'node:crypto';
import { PlatformError } from '@svc/contract';
import { MAX_CODE_CONTEXTS } from '@svc/contract/rest';
import type { Work } from '../store/idempotency.ts';
import type { Sealer } from '../secrets/sealer.ts';
import {
  beginCodeLease,
  contextEnvContext,
  endCodeLease,
  extendCodeLease,
  findContext,
  insertContext,
  interruptCode,
  isCodeInterrupted,
  listBusy,
  listContexts,
  removeContext,
  type ContextRecord,
} from '../store/code-contexts.ts';
import type { Database } from '../store/database.ts';
import type { InterpreterPlace } from './interpreter.ts';
import { InterpreterSlot } from './interpreter-slot.ts';
import type { SlotRequest, CodeResult, SlotParts } from './slot-request.ts';
import type { Language } from './languages.ts';

const EXTEND_MS = 20_000;

export interface ContextSpec {
  readonly language: Language;
  readonly name: string | null;
  readonly place: InterpreterPlace;
}

/** One run of a sandbox, from start to stop: its contexts end with it. */
export interface SandboxRun {
  readonly sandboxId: string;
  readonly runId: string;
}

export interface ContextParts extends SlotParts {
  readonly database: Database;
  readonly sealer: Sealer;
}

/**
 * An interpreter with its own state, made by a caller.
 * - It ends with the run of its sandbox. If only its interpreter ended, the next code runs in a new one that was started in the same
 *   way, and the result says so.
 * - Code in one context queues, also when it comes through several servers; contexts do not wait for each other.
 */
export class CodeContext {
  readonly id: string;
  readonly sandboxRun: SandboxRun;
  readonly spec: ContextSpec;
  readonly createdAt: string;
  readonly #slot: InterpreterSlot;
  readonly #database: Database;

  constructor(record: ContextRecord, parts: ContextParts) {
    const { id, sandboxId, runId, name, cwd, sealedEnv, createdAt } = record;
    this.id = id;
    this.sandboxRun = { sandboxId, runId };
    // The value was written by `CodeContexts`.
    const env =
      sealedEnv === null
        ? undefined
        : (JSON.parse(parts.sealer.open(sealedEnv, contextEnvContext(id))) as InterpreterPlace['env']);
    const place = { ...(cwd === null ? {} : { cwd }), ...(env === undefined ? {} : { env }) };
    this.spec = { language: record.language as Language, name, place };
    this.createdAt = createdAt;
    this.#slot = new InterpreterSlot(sandboxId, this.spec.language, parts, id, place);
    this.#database = parts.database;
  }

  /** @throws PlatformError `context_lost` when the context is removed meanwhile, by this or another server */
  async run(request: SlotRequest, signal: AbortSignal): Promise<CodeResult> {
    try {
      return await this.#inTurn(async (turn) => {
        const admit = async () => await this.#requireThere();
        const wasInterrupted = async () => await isCodeInterrupted(this.#database, turn);
        const result = await this.#slot.run({ ...request, admit, wasInterrupted }, signal);
        if (result.status === 'error') await this.#requireThere();
        return result;
      });
    } catch (error) {
      if (!signal.aborted && !PlatformError.is(error, 'context_lost')) await this.#requireThere(error);
      throw error;
    }
  }

  /** Starts the interpreter, so that a failure to start is reported now. */
  async prepare(signal: AbortSignal): Promise<void> {
    await this.#inTurn(async () => await this.#slot.prepare(signal));
  }

  /** As Ctrl-C does; without effect when no code runs. */
  async interrupt(signal: AbortSignal): Promise<void> {
    if (await interruptCode(this.#database, this.id)) await this.#slot.interrupt(signal);
  }

  async restart(signal: AbortSignal): Promise<void> {
    await this.#slot.restart(signal);
  }

  /** Releases the interpreter, which stays available to other servers. */
  close(): void {
    this.#slot.close();
  }

  async remove(): Promise<void> {
    await removeContext(this.#database, this.id);
    await this.#slot.remove();
  }

  /** Marks the context as busy for all servers while the work lasts. */
  async #inTurn<T>(work: (turn: string) => Promise<T>): Promise<T> {
    const turn = await beginCodeLease(this.#database, this.id);
    if (turn === undefined) throw removedMeanwhile(this.id);
    const extend = () => void extendCodeLease(this.#database, turn).catch(() => undefined);
    const timer = setInterval(extend, EXTEND_MS).unref();
    try {
      return await work(turn);
    } finally {
      clearInterval(timer);
      // A lock that cannot be released now expires.
      await endCodeLease(this.#database, turn).catch(() => undefined);
    }
  }

  async #requireThere(cause?: unknown): Promise<void> {
    const known = await findContext(this.#database, this.sandboxRun.runId, this.id);
    if (known === undefined) throw removedMeanwhile(this.id, cause);
  }
}

/** The contexts that callers have made, of all sandboxes. All servers of the store share them. */
export class CodeContexts {
  readonly #parts: ContextParts;
  /** Contexts that this server has used, by id. */
  readonly #used = new Map<string, CodeContext>();

  constructor(parts: ContextParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when the interpreter runs. A repeated request finds the context that the first one made.
   * @throws PlatformError `quota_exceeded`, `name_already_exists`, `exec_failed`, `sandbox_not_running`
   */
  async create(
    run: SandboxRun,
    spec: ContextSpec,
    signal: AbortSignal,
    work: Work | null = null,
  ): Promise<CodeContext> {
    const id = [run.runId, work?.id ?? randomUUID()].join(':');
    const { database } = this.#parts;
    const known = work?.isRepeat === true ? await findContext(database, run.runId, id) : undefined;
    const record = known ?? this.#newRecord(id, run, spec);
    if (known === undefined) await this.#insert(record);
    const context = this.#use(record);
    try {
      await context.prepare(signal);
      return context;
    } catch (error) {
      await this.remove(context);
      throw error;
    }
  }

  /** Oldest first. */
  async list(run: SandboxRun): Promise<readonly CodeContext[]> {
    return (await listContexts(this.#parts.database, run.runId)).map((record) => this.#use(record));
  }

  /** Ids of a run's contexts in which code runs or waits. */
  async listBusy({ runId }: SandboxRun): Promise<ReadonlySet<string>> {
    return await listBusy(this.#parts.database, runId);
  }

  /** By id or name. @throws PlatformError `context_not_found`, `context_lost` */
  async require(run: SandboxRun, idOrName: string): Promise<CodeContext> {
    const record = await findContext(this.#parts.database, run.runId, idOrName);
    if (record !== undefined) return this.#use(record);
    const gone = this.#used.get(idOrName);
    gone?.close();
    this.#used.delete(idOrName);
    const [runId, rest] = idOrName.split(':');
    if (rest === undefined || runId === run.runId) throw notFound(idOrName);
    throw lost(idOrName);
  }

  async remove(context: CodeContext): Promise<void> {
    this.#used.delete(context.id);
    await context.remove();
  }

  /** Releases the contexts of a sandbox that has stopped. */
  forget(sandboxId: string): void {
    this.#letGo(({ sandboxRun }) => sandboxRun.sandboxId === sandboxId);
  }

  close(): void {
    this.#letGo(() => true);
  }

  #letGo(isMeant: (context: CodeContext) => boolean): void {
    for (const context of [...this.#used.values()].filter(isMeant)) {
      context.close();
      this.#used.delete(context.id);
    }
  }

  #newRecord(id: string, { sandboxId, runId }: SandboxRun, { language, name, place }: ContextSpec) {
    const { sealer } = this.#parts;
    const { cwd = null, env } = place;
    const sealedEnv = env === undefined ? null : sealer.seal(JSON.stringify(env), contextEnvContext(id));
    return { id, sandboxId, runId, name, language, cwd, sealedEnv, createdAt: new Date().toISOString() };
  }

  async #insert(record: ContextRecord): Promise<void> {
    switch (await insertContext(this.#parts.database, record, MAX_CODE_CONTEXTS)) {
      case 'added':
        return;
      case 'too many':
        throw tooMany();
      case 'name taken':
        throw nameTaken(record.name ?? '');
      case 'ended':
        throw new PlatformError('sandbox_not_running', 'The sandbox was stopped meanwhile; start it first');
    }
  }

  #use(record: ContextRecord): CodeContext {
    const { id, sandboxId, runId } = record;
    const known = this.#used.get(id);
    if (known !== undefined) return known;
    // Contexts of an earlier run are over, even if no event has said so yet.
    this.#letGo(({ sandboxRun }) => sandboxRun.sandboxId === sandboxId && sandboxRun.runId !== runId);
    const context = new CodeContext(record, this.#parts);
    this.#used.set(id, context);
    return context;
  }
}

function notFound(context: string): PlatformError {
  const message = `There is no code context '${context}' in this sandbox; list them, or make one. They end with the run of their sandbox`;
  return new PlatformError('context_not_found', message, { details: { context_id: context } });
}

function lost(context: string): PlatformError {
  const reason = 'its sandbox was stopped or restarted';
  const message = `The code context is gone: ${reason}. Make a new one`;
  return new PlatformError('context_lost', message, { details: { context_id: context, reason } });
}

function removedMeanwhile(context: string, cause?: unknown): PlatformError {
  const message = 'The code context was removed while the code ran or waited; make a new one';
  return new PlatformError('context_lost', message, { details: { context_id: context }, cause });
}

function tooMany(): PlatformError {
  const message = `The sandbox has ${MAX_CODE_CONTEXTS} code contexts, which is the most; remove one first`;
  return new PlatformError('quota_exceeded', message, { details: { maximum: MAX_CODE_CONTEXTS } });
}

function nameTaken(name: string): PlatformError {
  const message = `A code context named '${name}' is there already; choose another name, or use that one`;
  return new PlatformError('name_already_exists', message, { details: { field: 'name', name } });
}
