import type { SshSettings } from './ssh-settings.ts';

/** Counts connections, so that nobody who is not logged in can keep others from it. */
export class Strangers {
  readonly #limits: SshSettings['connections'];
  readonly #byAddress = new Map<string, number>();
  #total = 0;
  #strangers = 0;

  constructor(limits: SshSettings['connections']) {
    this.#limits = limits;
  }

  /** Undefined when there is no room. Each function may be called once more without harm. */
  admit(address: string): { readonly loggedIn: () => void; readonly gone: () => void } | undefined {
    const { total, strangers, strangersPerAddress } = this.#limits;
    const fromHere = this.#byAddress.get(address) ?? 0;
    if (this.#total >= total || this.#strangers >= strangers || fromHere >= strangersPerAddress)
      return undefined;
    this.#total += 1;
    this.#strangers += 1;
    this.#byAddress.set(address, fromHere + 1);
    let isStranger = true;
    let isGone = false;
    const loggedIn = () => {
      if (!isStranger) return;
      isStranger = false;
      this.#strangers -= 1;
      const left = (this.#byAddress.get(address) ?? 1) - 1;
      if (left === 0) this.#byAddress.delete(address);
      else this.#byAddress.set(address, left);
    };
    const gone = () => {
      if (isGone) return;
      isGone = true;
      loggedIn();
      this.#total -= 1;
    };
    return { loggedIn, gone };
  }
}
