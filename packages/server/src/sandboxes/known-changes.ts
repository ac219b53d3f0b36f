import type { ReportedChange } from '@svc/contract/orchestrator';

/** Beyond this number all are forgotten; then known changes are looked at again. */
const MAX_KNOWN = 10_000;

/**
 * Remembers which reported changes are known already from answers. This server causes most changes itself, and the answer that it got
 * says at least as much.
 */
export class KnownChanges {
  readonly #sequences = new Map<string, number>();
  readonly #removed = new Set<string>();

  /** All that is in the answer was written down. */
  note(sandboxId: string, sequence: number | undefined): void {
    if (sequence === undefined) return;
    if (this.#sequences.size >= MAX_KNOWN) this.#sequences.clear();
    this.#sequences.set(sandboxId, sequence);
  }

  /** A sandbox whose desired state is removed is gone. */
  noteRemoved(sandboxId: string): void {
    if (this.#removed.size >= MAX_KNOWN) this.#removed.clear();
    this.#removed.add(sandboxId);
  }

  isRemoved(sandboxId: string): boolean {
    return this.#removed.has(sandboxId);
  }

  has({ id, sequence }: ReportedChange): boolean {
    return sequence !== undefined && sequence <= (this.#sequences.get(id) ?? -1);
  }

  /** Another orchestrator counts anew. */
  clear(): void {
    this.#sequences.clear();
    this.#removed.clear();
  }
}
