import { showLine } from '@svc/contract/visible';
import type { ImageProgress } from '@svc/engine/client';
import type { FetchProgress } from '@svc/sdk';
import { fetchLine, fetchText } from './fetch-text.ts';

const REDRAW_MS = 100;

/**
 * Shows the progress of an image: one line that changes on a terminal, one line per step elsewhere.
 * Everything goes to stderr, so that stdout holds the result alone.
 */
export class ProgressLine {
  readonly #stream: NodeJS.WriteStream;
  #lastText = '';
  #drawnAt = Number.NEGATIVE_INFINITY;
  #isFetching = false;

  constructor(stream: NodeJS.WriteStream = process.stderr) {
    this.#stream = stream;
  }

  /** Progress from the local engine. */
  readonly show = (progress: ImageProgress): void => {
    if (progress.step === 'downloading') {
      const { doneBytes: done_bytes, totalBytes: total_bytes } = progress;
      return this.showFetch({ message: 'downloading', done_bytes, total_bytes });
    }
    if (progress.step === 'resolving') return this.#draw(`looking up ${progress.reference}`, true);
    if (progress.step === 'waiting') return this.#draw('waiting for other pulls to end', true);
    if (progress.step === 'unpacking') return this.#draw(`unpacking ${shortDigest(progress.layer)}`, false);
    if (progress.step === 'building') this.#draw(progress.message, false);
  };

  /** Progress from a server. */
  readonly showFetch = (progress: FetchProgress): void => {
    const isCounted = progress.total_bytes !== null;
    this.#isFetching ||= isCounted;
    if (!this.#stream.isTTY) return this.#draw(fetchLine(progress), !this.#isFetching);
    const now = performance.now();
    if (isCounted && now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    this.#draw(fetchText(progress), false);
  };

  /** Leaves the terminal as it was. */
  clear(): void {
    if (this.#stream.isTTY && this.#lastText !== '') this.#stream.write('\r\u001B[2K');
    this.#lastText = '';
  }

  /** Steps that last only a moment are shown on a terminal, where they are wiped away, and not in a log. */
  #draw(said: string, isShort: boolean): void {
    const text = showLine(said);
    if (text === this.#lastText || (isShort && !this.#stream.isTTY)) return;
    this.#lastText = text;
    if (this.#stream.isTTY) this.#stream.write(`\r\u001B[2K${text.slice(0, this.#stream.columns - 1)}`);
    else this.#stream.write(`${text}\n`);
  }
}

function shortDigest(digest: string): string {
  return digest.replace('sha256:', '').slice(0, 12);
}
