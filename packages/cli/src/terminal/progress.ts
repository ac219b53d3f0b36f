import type { ImageProgress } from '@svc/engine/client';
import { formatBytes } from './amounts.ts';

const REDRAW_MS = 100;
const BAR_WIDTH = 24;

/**
 * Shows the progress of an image: one line that changes on a terminal, one line per step elsewhere.
 * Everything goes to stderr, so that stdout holds the result alone.
 */
export class ProgressLine {
  readonly #stream: NodeJS.WriteStream;
  #lastText = '';
  #drawnAt = 0;

  constructor(stream: NodeJS.WriteStream = process.stderr) {
    this.#stream = stream;
  }

  readonly show = (progress: ImageProgress): void => {
    const text = this.#describe(progress);
    if (text === undefined || text === this.#lastText) return;
    if (!this.#stream.isTTY) {
      this.#lastText = text;
      this.#stream.write(`${text}\n`);
      return;
    }
    const now = performance.now();
    if (progress.step === 'downloading' && now - this.#drawnAt < REDRAW_MS) return;
    this.#lastText = text;
    this.#drawnAt = now;
    this.#stream.write(`\r\u001B[2K${text.slice(0, this.#stream.columns - 1)}`);
  };

  /** Leaves the terminal as it was. */
  clear(): void {
    if (this.#stream.isTTY && this.#lastText !== '') this.#stream.write('\r\u001B[2K');
    this.#lastText = '';
  }

  #describe(progress: ImageProgress): string | undefined {
    // Over in a moment: worth showing where it is wiped away, not in a log.
    if (progress.step === 'resolving')
      return this.#stream.isTTY ? `looking up ${progress.reference}` : undefined;
    if (progress.step === 'downloading') return this.#download(progress);
    if (progress.step === 'unpacking') return `unpacking ${shortDigest(progress.layer)}`;
    return progress.step === 'building' ? progress.message : undefined;
  }

  #download({ doneBytes, totalBytes }: Download): string {
    const share = totalBytes === 0 ? 0 : Math.min(1, doneBytes / totalBytes);
    if (!this.#stream.isTTY)
      return `downloading ${Math.floor(share * 10) * 10} % of ${formatBytes(totalBytes)}`;
    const filled = Math.round(BAR_WIDTH * share);
    const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
    return `downloading ${bar} ${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`;
  }
}

type Download = Extract<ImageProgress, { step: 'downloading' }>;

function shortDigest(digest: string): string {
  return digest.replace('sha256:', '').slice(0, 12);
}
