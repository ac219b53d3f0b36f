import { writeSync } from 'node:fs';
import { errnoOf } from '@svc/contract/errno';
import { showJson } from '@svc/contract/visible';

/** How often a pipe whose reader is behind is tried again, and how long each wait is. */
const MAX_WAITS = 50;
const WAIT_MS = 2;

/**
 * Where a process of ours writes its log. Written at once, so that the last words before an end are not lost. What cannot be written,
 * because the disk is full or the reader gone, is dropped and counted, and the first line that can be written again comes after one
 * that says how many are missing: a log never ends the process that it tells of.
 */
export class ProcessLog {
  readonly #descriptor: number;
  #dropped = 0;
  #lastError = '';
  /** A line was cut off: the next one begins on a line of its own. */
  #isTorn = false;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** One line with its end, as pino hands it over. It quotes what others chose, and is read in terminals: nothing in it is invisible. */
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

/** Never notified: waiting for it is a pause that needs no event loop. */
const CELL = new Int32Array(new SharedArrayBuffer(4));
