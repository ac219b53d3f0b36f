const FIRST_MS = 100;
const LAST_MS = 5000;

/** Pauses between attempts, each longer than the one before. `wake` ends the pause that is under way. */
export class BackOff {
  #nextMs = FIRST_MS;
  #wake: (() => void) | undefined;

  async wait(): Promise<void> {
    const waitMs = this.#nextMs;
    this.#nextMs = Math.min(waitMs * 2, LAST_MS);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  wake(): void {
    this.#nextMs = FIRST_MS;
    this.#wake?.();
  }
}
