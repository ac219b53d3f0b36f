/** Maximum number of prepared statements. The set of queries is fixed, except for some with lists of varying length. */
const MAX_NAMED = 256;

/**
 * Names the statements that connections keep prepared. A statement gets a name the second time it is seen, because
 * many are used only once.
 */
export class StatementNames {
  readonly #names = new Map<string, string | null>();
  #named = 0;
  #generation = 0;

  /** Undefined: not prepared, parsed for this use only. */
  nameOf(text: string, parameterCount: number): string | undefined {
    // Statements without parameters are starts and ends of transactions, and migrations.
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

  /** Gives all statements new names after a change of the tables, so that they are prepared again. */
  renew(): void {
    this.#generation += 1;
    this.#names.clear();
    this.#named = 0;
  }

  #forgetUnnamed(): void {
    for (const [text, name] of this.#names) if (name === null) this.#names.delete(text);
  }
}
