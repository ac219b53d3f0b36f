import { showLine } from '@svc/contract/visible';

const REDRAW_MS = 200;
/** Shorter waits are not shown. */
const QUIET_MS = 500;

/** One line on the terminal with the current work and its duration; nothing elsewhere. */
export class StatusLine implements Disposable {
  readonly #stream: NodeJS.WriteStream;
  readonly #begun = performance.now();
  readonly #timer: NodeJS.Timeout | undefined;
  #text: string;
  #note = '';
  #isDrawn = false;

  constructor(text: string, stream: NodeJS.WriteStream = process.stderr) {
    this.#text = text;
    this.#stream = stream;
    if (stream.isTTY) this.#timer = setInterval(() => this.#draw(), REDRAW_MS).unref();
  }

  /** Sets the text for new work. */
  say(text: string): void {
    this.#text = text;
    this.#note = '';
  }

  /** Sets a detail that is shown after the text. */
  note(text: string): void {
    this.#note = text === '' ? '' : `: ${text}`;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    if (this.#isDrawn) this.#stream.write('\r\u001B[2K');
  }

  #draw(): void {
    const elapsedMs = performance.now() - this.#begun;
    if (elapsedMs < QUIET_MS) return;
    const line = `${showLine(this.#text + this.#note)} … ${Math.floor(elapsedMs / 1000)}s`;
    this.#stream.write(`\r\u001B[2K${line.slice(0, this.#stream.columns - 1)}`);
    this.#isDrawn = true;
  }
}
