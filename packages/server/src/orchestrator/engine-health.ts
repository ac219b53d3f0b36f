import type { OrchestratorDescription } from './orchestrator.ts';

export type Health =
  | { readonly isHealthy: true; readonly description: OrchestratorDescription }
  | { readonly isHealthy: false; readonly reason: string };

/** Whether sandboxes can be run now, as last seen. */
export class EngineHealth {
  #current: Health = { isHealthy: false, reason: 'the engine has not answered yet' };
  #isKnown = false;

  get current(): Health {
    return this.#current;
  }

  /** Why none can be run; null: they can. */
  get problem(): string | null {
    return this.#current.isHealthy ? null : this.#current.reason;
  }

  /** Whether it was asked at all. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  noteDescription(description: OrchestratorDescription): void {
    this.#isKnown = true;
    this.#current =
      description.problem === null
        ? { isHealthy: true, description }
        : { isHealthy: false, reason: description.problem };
  }

  /** @returns whether this is news. */
  noteAbsence(reason: string): boolean {
    const isNew = this.#current.isHealthy || this.#current.reason !== reason;
    this.#isKnown = true;
    this.#current = { isHealthy: false, reason };
    return isNew;
  }
}
