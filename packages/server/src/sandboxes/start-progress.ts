import { EventEmitter } from 'node:events';
import { NextChange } from './next-change.ts';

/** Progress of a long call. `done` and `total` are in the same unit; null when unknown. */
export interface Progress {
  readonly message: string;
  readonly done: number | null;
  readonly total: number | null;
}

/** Progress of the starts that this server runs. */
export class StartProgress {
  readonly #latest = new Map<string, Progress>();
  readonly #changes = new EventEmitter<Record<string, []>>().setMaxListeners(0);

  /** Null: unknown. Another server may run the start. */
  of(sandboxId: string): Progress | null {
    return this.#latest.get(sandboxId) ?? null;
  }

  note(sandboxId: string, progress: Progress): void {
    this.#latest.set(sandboxId, progress);
    this.#changes.emit(sandboxId);
  }

  /** The start has ended or failed. */
  forget(sandboxId: string): void {
    this.#latest.delete(sandboxId);
    this.#changes.emit(sandboxId);
  }

  /** The next change from now on. */
  next(sandboxId: string): NextChange {
    return new NextChange(this.#changes, sandboxId);
  }
}
