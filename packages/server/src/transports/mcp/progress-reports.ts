import type { ServerNotification } from '@modelcontextprotocol/sdk/types.js';
import type { Progress } from '../../sandboxes/start-progress.ts';
import type { SessionLog } from './session-log.ts';

/** Downloads report many times a second; nobody reads that fast. */
const INTERVAL_MS = 200;
/** Clients give a call up that they hear nothing of; most begin to count anew with every progress. */
const BEAT_MS = 2000;
const MIB = 1024 * 1024;

export interface ProgressParts {
  /** Undefined: nobody asked for progress. */
  readonly token: string | number | undefined;
  readonly log: SessionLog;
  readonly send: (notification: ServerNotification) => Promise<void>;
}

/**
 * Turns the progress of a call into log messages, and into progress notifications for whoever asked for them with a token; they
 * are also told that a call is still at work when it has nothing else to tell. Numbers only ever grow, as the protocol demands, so
 * how far a download is stands in the message. Dispose of it at the end of the call.
 */
export class ProgressReports implements Disposable {
  readonly #parts: ProgressParts;
  readonly #startedAt = performance.now();
  readonly #beat: NodeJS.Timeout | undefined;
  #count = 0;
  #lastAt = -INTERVAL_MS;
  #lastMessage = '';

  constructor(parts: ProgressParts) {
    this.#parts = parts;
    if (parts.token !== undefined) this.#beat = setInterval(() => this.#tellTime(), BEAT_MS).unref();
  }

  report(progress: Progress): void {
    const now = performance.now();
    if (progress.message === this.#lastMessage && now - this.#lastAt < INTERVAL_MS) return;
    const { log, send } = this.#parts;
    if (progress.message !== this.#lastMessage) log.write('info', progress.message, send).catch(ignore);
    this.#lastMessage = progress.message;
    this.#notify(describe(progress));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#beat);
  }

  #tellTime(): void {
    if (performance.now() - this.#lastAt < BEAT_MS / 2) return;
    const seconds = Math.round((performance.now() - this.#startedAt) / 1000);
    this.#notify(`${this.#lastMessage === '' ? 'running' : this.#lastMessage}: ${seconds} s`);
  }

  #notify(message: string): void {
    this.#lastAt = performance.now();
    const { token, send } = this.#parts;
    if (token === undefined) return;
    this.#count += 1;
    const params = { progressToken: token, progress: this.#count, message };
    send({ method: 'notifications/progress', params }).catch(ignore);
  }
}

function ignore(): void {
  // Somebody who has left needs no news.
}

function describe({ message, done, total }: Progress): string {
  if (done === null) return message;
  const amount = total === null ? toMib(done) : `${toMib(done)} of ${toMib(total)}`;
  return `${message}: ${amount} MiB`;
}

function toMib(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}
