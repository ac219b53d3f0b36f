import type { UnitOptions } from './interpreter.ts';
import { InterpreterSlot, SANDBOX_SLOT } from './interpreter-slot.ts';
import type { CodeResult, RunListener, SlotParts } from './slot-request.ts';
import type { Language } from './languages.ts';
import type { Work } from '../store/idempotency.ts';

export interface CodeRequest {
  readonly sandboxId: string;
  readonly language: Language;
  readonly code: string;
  readonly options?: UnitOptions | undefined;
  /** Counted from the moment at which the code begins to run. */
  readonly timeoutMs: number | null;
  readonly listener?: RunListener;
  /** Requests with the same `Work` run the code once. */
  readonly work?: Work | null;
}

/**
 * Runs code in interpreters that keep their state.
 * - Each sandbox has one interpreter per language. It starts with the first call and lives until the sandbox stops, also when the engine
 *   or this server is restarted meanwhile.
 * - Calls of one language in one sandbox queue; all others run in parallel.
 * - After an interpreter was lost, `error` of the next result says so, and a new one has started.
 * - A signal that aborts ends the wait at once and interrupts the code as a timeout does.
 */
export interface CodeRunner {
  /** @throws PlatformError when the code could not be run; code that fails is a result. */
  run(request: CodeRequest, signal: AbortSignal): Promise<CodeResult>;
  /** Releases the interpreters of a sandbox that has stopped. */
  forget(sandboxId: string): void;
}

export function createCodeRunner(parts: SlotParts): CodeRunner & { close(): void } {
  const sandboxes = new Map<string, Map<Language, InterpreterSlot>>();
  const slotOf = (sandboxId: string, language: Language): InterpreterSlot => {
    const slots = sandboxes.get(sandboxId) ?? new Map<Language, InterpreterSlot>();
    sandboxes.set(sandboxId, slots);
    const slot = slots.get(language) ?? new InterpreterSlot(sandboxId, language, parts, SANDBOX_SLOT);
    slots.set(language, slot);
    return slot;
  };
  const forget = (sandboxId: string): void => {
    for (const slot of sandboxes.get(sandboxId)?.values() ?? []) slot.close();
    sandboxes.delete(sandboxId);
  };
  return {
    run: async ({ sandboxId, language, ...request }, signal) =>
      await slotOf(sandboxId, language).run(request, signal),
    forget,
    close: () => {
      for (const sandboxId of sandboxes.keys()) forget(sandboxId);
    },
  };
}
