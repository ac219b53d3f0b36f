const FIRST_MS = 100;
const LAST_MS = 5000;
/** After running this long a process counts as healthy; its end is a new failure. */
export const HEALTHY_RUN_MS = 3000;

/** Back-off for restarts of a process that ended: first none, then longer each time while it ends soon. */
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
