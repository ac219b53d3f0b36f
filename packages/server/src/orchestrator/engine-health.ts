import type { OrchestratorDescription } from '@svc/contract/orchestrator';

export type Health =
  | { readonly isHealthy: true; readonly description: OrchestratorDescription }
  | { readonly isHealthy: false; readonly reason: string };

/** The last known health of the engines: whether sandboxes can run, and on which nodes they cannot. */
export class EngineHealth {
  #current: Health = { isHealthy: false, reason: 'the engine has not answered yet' };
  #isKnown = false;
  readonly #problems = new Map<string, string>();

  get current(): Health {
    return this.#current;
  }

  /** Why no sandbox can run; null: they can. */
  get problem(): string | null {
    return this.#current.isHealthy ? null : this.#current.reason;
  }

  /** Why the sandboxes of a node cannot be reached; null: they can. The only node of a host has no name. */
  problemOf(node: string | null): string | null {
    return this.problem ?? (node === null ? null : (this.#problems.get(node) ?? null));
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

  noteNode(node: string, problem: string | null): void {
    if (problem === null) this.#problems.delete(node);
    else this.#problems.set(node, problem);
  }
}
