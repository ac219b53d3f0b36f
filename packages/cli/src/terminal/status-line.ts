import { showLine } from '@svc/contract/visible';

const REDRAW_MS = 200;
/** Over before anybody has read it: not worth a line. */
const QUIET_MS = 500;

/** One line on the terminal that tells what is going on and for how long; nothing elsewhere. */
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

  /** Something else is going on. */
  say(text: string): void {
    this.#text = text;
    this.#note = '';
  }

  /** What is being waited for, behind the text. */
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
