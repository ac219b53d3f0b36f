import type { Duplex } from 'node:stream';
import { serialize } from 'node:v8';
import type { EgressReport } from './egress-messages.ts';
import { frame, LengthFrames } from './length-frames.ts';
import { MAX_REPORT_BYTES, readReport } from './read-report.ts';

export interface ProcessLinkOptions {
  /** Reports beyond this rate are read later; null: no limit. */
  readonly maxReportsPerSecond: number | null;
  readonly onReport: (report: EgressReport) => void;
  /** Called with the first invalid report; nothing after it is read. */
  readonly onNonsense: (error: unknown) => void;
}

/** Fits the policies, and secrets with their authorities, of a few hundred sandboxes. A process that reads nothing is replaced earlier. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
const SECOND_MS = 1000;

/**
 * The engine's end of a connection to a process that reads hostile bytes and may be compromised.
 * - Its reports are bounded, validated and rate-limited; no report can end the engine or pass a descriptor. Node's own channel between
 *   processes guarantees none of that.
 * - The engine buffers a bounded number of bytes that the process does not read.
 */
export class ProcessLink {
  readonly #socket: Duplex;
  readonly #options: ProcessLinkOptions;
  readonly #frames = new LengthFrames(MAX_REPORT_BYTES, 4);
  #second = 0;
  #reports = 0;
  #pause: NodeJS.Timeout | undefined;

  constructor(socket: Duplex, options: ProcessLinkOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on('error', () => undefined); // `close` follows.
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.once('close', () => clearTimeout(this.#pause));
  }

  get isOpen(): boolean {
    return this.#socket.writable;
  }

  send(order: object): void {
    if (!this.isOpen) return;
    if (this.#socket.writableLength > MAX_UNREAD_BYTES)
      return this.#refuse(new Error('It does not read its messages'));
    this.#socket.write(frame(serialize(order), 4));
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    try {
      const messages = this.#frames.push(chunk);
      if (messages === null) throw new Error('A message is longer than any report');
      for (const message of messages) {
        if (this.#socket.destroyed) return;
        this.#options.onReport(readReport(message));
      }
      this.#slowDown(messages.length);
    } catch (error) {
      this.#refuse(error);
    }
  }

  #refuse(error: unknown): void {
    this.close();
    this.#options.onNonsense(error);
  }

  #slowDown(count: number): void {
    const now = performance.now();
    if (now - this.#second >= SECOND_MS) [this.#second, this.#reports] = [now, 0];
    this.#reports += count;
    const { maxReportsPerSecond } = this.#options;
    if (maxReportsPerSecond === null || this.#reports <= maxReportsPerSecond) return;
    this.#socket.pause();
    this.#pause = setTimeout(() => this.#socket.resume(), this.#second + SECOND_MS - now);
  }
}
