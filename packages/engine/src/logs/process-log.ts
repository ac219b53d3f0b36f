import { writeSync } from 'node:fs';
import { errnoOf } from '@svc/contract/errno';
import { showJson } from '@svc/contract/visible';

/** How often a write to a full pipe is repeated, and how long each wait is. */
const MAX_WAITS = 50;
const WAIT_MS = 2;

/**
 * The log stream of a process of svc. Writes are synchronous, so that the last lines before an end are not lost. A line that cannot be
 * written, because the disk is full or the reader gone, is dropped and counted; the next line that can be written is preceded by one with
 * the number of dropped lines. A log error never ends the process.
 */
export class ProcessLog {
  readonly #descriptor: number;
  #dropped = 0;
  #lastError = '';
  /** The last line was truncated: the next one must begin on a new line. */
  #isTorn = false;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** One line with its line end, as pino passes it. Lines quote text from users and are read in terminals: control characters are escaped. */
  write(line: string): void {
    const before = this.#dropped === 0 ? '' : this.#tellDropped();
    if (this.#put(`${this.#isTorn ? '\n' : ''}${before}${showJson(line)}`)) this.#dropped = 0;
    else this.#dropped += 1;
  }

  #tellDropped(): string {
    const msg = `${this.#dropped} lines of this log could not be written and are missing (${this.#lastError})`;
    return `${JSON.stringify({ level: 40, time: Date.now(), pid: process.pid, dropped: this.#dropped, msg })}\n`;
  }

  #put(text: string): boolean {
    const bytes = Buffer.from(text);
    let done = 0;
    let waits = 0;
    while (done < bytes.length) {
      try {
        done += writeSync(this.#descriptor, bytes, done);
      } catch (error) {
        this.#lastError = errnoOf(error) ?? 'unknown';
        if (this.#lastError === 'EAGAIN' && waits < MAX_WAITS) {
          waits += 1;
          Atomics.wait(CELL, 0, 0, WAIT_MS);
          continue;
        }
        if (done > 0) this.#isTorn = true;
        return false;
      }
    }
    this.#isTorn = false;
    return true;
  }
}

/** Never notified: `Atomics.wait` on it is a sleep that needs no event loop. */
const CELL = new Int32Array(new SharedArrayBuffer(4));
