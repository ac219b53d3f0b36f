/** Statements that are kept prepared. The set of queries is fixed; only some with lists of many lengths are not in it. */
const MAX_NAMED = 256;

/**
 * Which statements connections are to keep prepared, and under which names. Text that is seen once may never come again;
 * from the second time on it has a name.
 */
export class StatementNames {
  readonly #names = new Map<string, string | null>();
  #named = 0;
  #generation = 0;

  /** Undefined: it is to be parsed at this use only. */
  nameOf(text: string, parameterCount: number): string | undefined {
    // Without parameters these are the beginnings and ends of transactions, and migrations.
    if (parameterCount === 0) return undefined;
    const known = this.#names.get(text);
    if (known === undefined) {
      if (this.#names.size >= 2 * MAX_NAMED) this.#forgetUnnamed();
      this.#names.set(text, null);
      return undefined;
    }
    if (known !== null) return known;
    if (this.#named >= MAX_NAMED) return undefined;
    this.#named += 1;
    const name = `svc_${this.#generation}_${this.#named}`;
    this.#names.set(text, name);
    return name;
  }

  /** What was prepared does not fit the tables any more: all is prepared anew. */
  renew(): void {
    this.#generation += 1;
    this.#names.clear();
    this.#named = 0;
  }

  #forgetUnnamed(): void {
    for (const [text, name] of this.#names) if (name === null) this.#names.delete(text);
  }
}
