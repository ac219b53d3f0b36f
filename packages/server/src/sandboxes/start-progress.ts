import { EventEmitter } from 'node:events';
import { NextChange } from './next-change.ts';

/** How far a long call is. `done` and `total` are in the same unit; null when unknown. */
export interface Progress {
  readonly message: string;
  readonly done: number | null;
  readonly total: number | null;
}

/** How far the starts are that this server is bringing about, for whoever follows one. */
export class StartProgress {
  readonly #latest = new Map<string, Progress>();
  readonly #changes = new EventEmitter<Record<string, []>>().setMaxListeners(0);

  /** Null: nothing is known. Another server may be at work. */
  of(sandboxId: string): Progress | null {
    return this.#latest.get(sandboxId) ?? null;
  }

  note(sandboxId: string, progress: Progress): void {
    this.#latest.set(sandboxId, progress);
    this.#changes.emit(sandboxId);
  }

  /** The start is over, one way or the other. */
  forget(sandboxId: string): void {
    this.#latest.delete(sandboxId);
    this.#changes.emit(sandboxId);
  }

  /** When there is news, from now on. */
  next(sandboxId: string): NextChange {
    return new NextChange(this.#changes, sandboxId);
  }
}
