/** Of each stream; older output is dropped, and the notice that the SDK knows says so. */
const MOST_UNREAD = 1024 * 1024;

interface Output {
  readonly output: string;
  readonly stdout: string;
  readonly stderr: string;
}

/** The output of a process that was not read yet: both streams, and both in one as they came. */
export class UnreadOutput {
  #output = new Tail();
  #stdout = new Tail();
  #stderr = new Tail();

  async collect(stream: 'stdout' | 'stderr', texts: AsyncIterable<string>): Promise<void> {
    for await (const text of texts) {
      this.#output.add(text);
      (stream === 'stdout' ? this.#stdout : this.#stderr).add(text);
    }
  }

  take(): Output {
    return { output: this.#output.take(), stdout: this.#stdout.take(), stderr: this.#stderr.take() };
  }
}

class Tail {
  #text = '';
  #dropped = 0;

  add(text: string): void {
    this.#text += text;
    const over = this.#text.length - MOST_UNREAD;
    if (over <= 0) return;
    this.#dropped += over;
    this.#text = this.#text.slice(over);
  }

  take(): string {
    const notice =
      this.#dropped === 0 ? '' : `[...${this.#dropped} characters truncated from process output...]\n`;
    const taken = notice + this.#text;
    this.#text = '';
    this.#dropped = 0;
    return taken;
  }
}
