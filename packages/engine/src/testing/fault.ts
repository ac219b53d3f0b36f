/** Counts the calls to a host and makes one of them fail, before or after it has acted. */
export class Fault {
  #calls = 0;
  readonly #failAt: number;
  readonly #when: 'before' | 'after';

  constructor(failAt: number, when: 'before' | 'after') {
    this.#failAt = failAt;
    this.#when = when;
  }

  get isBefore(): boolean {
    return this.#when === 'before';
  }

  get wasInjected(): boolean {
    return this.#calls >= this.#failAt;
  }

  wrap<T extends object>(port: T, steps: readonly (keyof T)[]): T {
    return wrapped(port, steps, (act) => this.#step(act));
  }

  /** For synchronous steps. */
  wrapSync<T extends object>(port: T, steps: readonly (keyof T)[]): T {
    return wrapped(port, steps, (act) => {
      const check = this.#begin();
      const result = act();
      check();
      return result;
    });
  }

  async #step(act: () => unknown): Promise<unknown> {
    const check = this.#begin();
    const result = await act();
    check();
    return result;
  }

  /** @returns the function to call after the step has acted */
  #begin(): () => void {
    this.#calls += 1;
    const fails = this.#calls === this.#failAt;
    if (fails && this.#when === 'before') throw new Error('injected before');
    return () => {
      if (fails) throw new Error('injected after');
    };
  }
}

function wrapped<T extends object>(
  port: T,
  steps: readonly (keyof T)[],
  run: (act: () => unknown) => unknown,
): T {
  return new Proxy(port, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const call = (...args: unknown[]): unknown => Reflect.apply(value, target, args);
      return steps.some((step) => step === name) ? (...args: unknown[]) => run(() => call(...args)) : call;
    },
  });
}
