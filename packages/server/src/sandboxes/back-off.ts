const FIRST_MS = 100;
const LAST_MS = 5000;

/** Exponential back-off between attempts. `wake` ends the current pause. */
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
