import { randomUUID } from 'node:crypto';
import { PlatformError } from '@svc/contract';
import { MAX_CODE_CONTEXTS } from '@svc/contract/rest';
import type { CodeResult, CodeRunnerParts } from './code-runner.ts';
import type { InterpreterPlace } from './interpreter.ts';
import { InterpreterSlot, type SlotRequest } from './interpreter-slot.ts';
import type { Language } from './languages.ts';

const MAX_REMEMBERED_RUNS = 1000;

export interface ContextSpec {
  readonly language: Language;
  readonly name: string | null;
  readonly place: InterpreterPlace;
}

/** One life of a sandbox: its contexts end with it. */
export interface SandboxRun {
  readonly sandboxId: string;
  readonly runId: string;
}

/**
 * An interpreter of its own, made by a caller.
 * - It ends with the run of its sandbox and with this server. When only its interpreter ended, the next code runs in a new
 *   one that was started in the same way, and is told so.
 * - Code in one context queues; contexts do not wait for each other.
 */
export class CodeContext {
  readonly id: string;
  readonly sandboxRun: SandboxRun;
  readonly spec: ContextSpec;
  readonly createdAt = new Date().toISOString();
  readonly slot: InterpreterSlot;
  #isRemoved = false;

  constructor(id: string, run: SandboxRun, spec: ContextSpec, parts: CodeRunnerParts) {
    this.id = id;
    this.sandboxRun = run;
    this.spec = spec;
    this.slot = new InterpreterSlot(
      run.sandboxId,
      spec.language,
      parts,
      { name: id, isBound: true },
      spec.place,
    );
  }

  /** @throws PlatformError `context_lost` when it is removed meanwhile */
  async run(request: SlotRequest, signal: AbortSignal): Promise<CodeResult> {
    try {
      return await this.slot.run(request, signal);
    } catch (error) {
      if (!this.#isRemoved) throw error;
      const message = 'The code context was removed while the code ran or waited; make a new one';
      throw new PlatformError('context_lost', message, { details: { context_id: this.id }, cause: error });
    }
  }

  remove(): void {
    this.#isRemoved = true;
    this.slot.remove();
  }
}

/** The contexts that callers have made, of all sandboxes. They are known to this server alone. */
export class CodeContexts {
  readonly #parts: CodeRunnerParts;
  readonly #sandboxes = new Map<string, Map<string, CodeContext>>();
  /** Part of every id, so that one of another server, or of this one before it was restarted, is seen to be lost. */
  readonly #instance = randomUUID().slice(0, 8);
  /** Runs that have ended, of which others may learn a moment later. The latest only. */
  readonly #endedRuns = new Set<string>();

  constructor(parts: CodeRunnerParts) {
    this.#parts = parts;
  }

  /** Resolves when the interpreter runs. @throws PlatformError `quota_exceeded`, `name_already_exists`, `exec_failed` */
  async create(run: SandboxRun, spec: ContextSpec, signal: AbortSignal): Promise<CodeContext> {
    const contexts = this.#of(run);
    if (contexts.size >= MAX_CODE_CONTEXTS) throw tooMany();
    if (spec.name !== null && find(contexts, spec.name) !== undefined) throw nameTaken(spec.name);
    const id = [this.#instance, run.runId, randomUUID()].join(':');
    const context = new CodeContext(id, run, spec, this.#parts);
    // Before it has started: nobody else gets its name or its place.
    contexts.set(id, context);
    try {
      await context.slot.prepare(signal);
      return context;
    } catch (error) {
      this.remove(context);
      throw error;
    }
  }

  /** Oldest first. */
  list(run: SandboxRun): readonly CodeContext[] {
    return [...this.#of(run).values()];
  }

  /** By id or name. @throws PlatformError `context_not_found`, `context_lost` */
  require(run: SandboxRun, idOrName: string): CodeContext {
    const context = find(this.#of(run), idOrName);
    if (context !== undefined) return context;
    const [instance, runId, rest] = idOrName.split(':');
    if (rest === undefined) throw notFound(idOrName);
    if (instance !== this.#instance) throw lost(idOrName, ELSEWHERE);
    if (runId !== run.runId || this.#endedRuns.has(run.runId)) {
      throw lost(idOrName, 'its sandbox was stopped or restarted');
    }
    throw notFound(idOrName);
  }

  remove(context: CodeContext): void {
    context.remove();
    this.#sandboxes.get(context.sandboxRun.sandboxId)?.delete(context.id);
  }

  /** Ends the contexts of a sandbox that has stopped. */
  forget(sandboxId: string): void {
    for (const context of this.#sandboxes.get(sandboxId)?.values() ?? []) {
      context.slot.close();
      this.#endedRuns.add(context.sandboxRun.runId);
    }
    this.#sandboxes.delete(sandboxId);
    for (const oldest of this.#endedRuns) {
      if (this.#endedRuns.size <= MAX_REMEMBERED_RUNS) break;
      this.#endedRuns.delete(oldest);
    }
  }

  close(): void {
    for (const sandboxId of this.#sandboxes.keys()) this.forget(sandboxId);
  }

  /** What is left of an earlier run, when nobody has told us of its end yet, is over. */
  #of({ sandboxId, runId }: SandboxRun): Map<string, CodeContext> {
    const known = this.#sandboxes.get(sandboxId);
    const [first] = known?.values() ?? [];
    if (first !== undefined && first.sandboxRun.runId !== runId) this.forget(sandboxId);
    const contexts = this.#sandboxes.get(sandboxId) ?? new Map<string, CodeContext>();
    this.#sandboxes.set(sandboxId, contexts);
    return contexts;
  }
}

function find(contexts: ReadonlyMap<string, CodeContext>, idOrName: string): CodeContext | undefined {
  return contexts.get(idOrName) ?? [...contexts.values()].find(({ spec }) => spec.name === idOrName);
}

function notFound(context: string): PlatformError {
  const message = `There is no code context '${context}' in this sandbox; list them, or make one. They end with the run of their sandbox and with the server`;
  return new PlatformError('context_not_found', message, { details: { context_id: context } });
}

const ELSEWHERE = 'it belongs to another server of this database, or to this one before it was restarted';

function lost(context: string, reason: string): PlatformError {
  const message = `The code context is not to be had here: ${reason}. Make a new one`;
  return new PlatformError('context_lost', message, { details: { context_id: context, reason } });
}

function tooMany(): PlatformError {
  const message = `The sandbox has ${MAX_CODE_CONTEXTS} code contexts, which is the most; remove one first`;
  return new PlatformError('quota_exceeded', message, { details: { maximum: MAX_CODE_CONTEXTS } });
}

function nameTaken(name: string): PlatformError {
  const message = `A code context named '${name}' is there already; choose another name, or use that one`;
  return new PlatformError('name_already_exists', message, { details: { field: 'name', name } });
}
