import type { OrchestratorDescription } from '@svc/contract/orchestrator';

export type Health =
  | { readonly isHealthy: true; readonly description: OrchestratorDescription }
  | { readonly isHealthy: false; readonly reason: string };

/** The last known health of the engine: whether sandboxes can run. */
export class EngineHealth {
  #current: Health = { isHealthy: false, reason: 'the engine has not answered yet' };
  #isKnown = false;

  get current(): Health {
    return this.#current;
  }

  /** Why no sandbox can run; null: they can. */
  get problem(): string | null {
    return this.#current.isHealthy ? null : this.#current.reason;
  }

  /** Whether the engine has been asked yet. */
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

  /** @returns whether the state has changed. */
  noteAbsence(reason: string): boolean {
    const isNew = this.#current.isHealthy || this.#current.reason !== reason;
    this.#isKnown = true;
    this.#current = { isHealthy: false, reason };
    return isNew;
  }
}
