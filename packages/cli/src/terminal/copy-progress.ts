import { formatBytes } from './amounts.ts';
import { bar } from './fetch-text.ts';

const REDRAW_MS = 100;

/** The progress of a copy on one line of a terminal; nothing elsewhere. */
export class CopyProgress implements Disposable {
  readonly #stream: NodeJS.WriteStream;
  readonly #begun = performance.now();
  readonly #totalBytes: number | null;
  #doneBytes = 0;
  #doneFiles = 0;
  #drawnAt = Number.NEGATIVE_INFINITY;

  /** `totalBytes` null: unknown so far. */
  constructor(totalBytes: number | null, stream: NodeJS.WriteStream = process.stderr) {
    this.#totalBytes = totalBytes;
    this.#stream = stream;
  }

  readonly addBytes = (count: number): void => {
    this.#doneBytes += count;
    this.#draw();
  };

  readonly addFile = (_path: string, sizeBytes: number): void => {
    this.#doneFiles += 1;
    this.addBytes(sizeBytes);
  };

  /** Counts the bytes that pass through. */
  async *counted(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    for await (const chunk of chunks) {
      yield chunk;
      this.addBytes(chunk.length);
    }
  }

  get text(): string {
    const rate = `${formatBytes((this.#doneBytes / Math.max(1, performance.now() - this.#begun)) * 1000)}/s`;
    if (this.#totalBytes === null)
      return `${this.#doneFiles} files, ${formatBytes(this.#doneBytes)}, ${rate}`;
    return `${bar(this.#doneBytes, this.#totalBytes)}, ${rate}`;
  }

  [Symbol.dispose](): void {
    if (this.#drawnAt > 0) this.#stream.write('\r\u001B[2K');
  }

  #draw(): void {
    const now = performance.now();
    if (!this.#stream.isTTY || now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    this.#stream.write(`\r\u001B[2K${this.text.slice(0, this.#stream.columns - 1)}`);
  }
}
