import type { ServerNotification } from '@modelcontextprotocol/sdk/types.js';
import type { Progress } from '../../sandboxes/start-progress.ts';
import type { SessionLog } from './session-log.ts';

/** Minimum interval of reports; downloads report more often than a person can read. */
const INTERVAL_MS = 200;
/** Interval of heartbeats: clients abort a silent call; most restart their timeout with each progress notification. */
const BEAT_MS = 2000;
const MIB = 1024 * 1024;

export interface ProgressParts {
  /** Undefined: the caller did not request progress. */
  readonly token: string | number | undefined;
  readonly log: SessionLog;
  readonly send: (notification: ServerNotification) => Promise<void>;
}

/**
 * Sends the progress of a call as log messages, and as progress notifications if the caller sent a token; these
 * include heartbeats while there is no other progress. The protocol requires increasing numbers, so the message has
 * the position of a download. Dispose of it at the end of the call.
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
  // The client has disconnected.
}

function describe({ message, done, total }: Progress): string {
  if (done === null) return message;
  const amount = total === null ? toMib(done) : `${toMib(done)} of ${toMib(total)}`;
  return `${message}: ${amount} MiB`;
}

function toMib(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}
