/**
 * Output of an interpreter whose end may turn out not to be output: the interpreters here print the traceback of an exception, which
 * E2B's clients get as a value alone.
 */
export class HeldOutput {
  #text = '';

  /** What is sent later, unless `cut` takes it away. */
  push(text: string): void {
    this.#text += text;
  }

  get isEmpty(): boolean {
    return this.#text === '';
  }

  /** Drops this text from the end of what is held. */
  cut(end: string): void {
    if (end !== '' && this.#text.endsWith(end)) this.#text = this.#text.slice(0, -end.length);
  }

  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }
}
