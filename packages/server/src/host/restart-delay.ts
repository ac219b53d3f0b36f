const FIRST_MS = 100;
const LAST_MS = 5000;
/** A process that ran this long has started well; its end is a new failure. */
export const HEALTHY_RUN_MS = 3000;

/** How long to wait before a process that ended is started again: not at all, then longer each time while it ends soon. */
export class RestartDelay {
  #nextMs = 0;

  /** `ranMs`: how long it ran. */
  after(ranMs: number): number {
    if (ranMs >= HEALTHY_RUN_MS) this.#nextMs = 0;
    const delayMs = this.#nextMs;
    this.#nextMs = Math.min(Math.max(delayMs * 2, FIRST_MS), LAST_MS);
    return delayMs;
  }
}
