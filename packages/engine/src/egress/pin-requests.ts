import type { EgressReport, Pin } from './egress-messages.ts';

/** Longer than any change of the packet filter, shorter than the DNS timeout of programs. */
const DEADLINE_MS = 4000;

/** Asks the engine to open addresses for a sandbox before it gets them, and waits for the confirmation. */
export class PinRequests {
  readonly #send: (report: EgressReport) => void;
  readonly #waiting = new Map<
    number,
    { readonly settle: (done: boolean) => void; readonly timer: NodeJS.Timeout }
  >();
  #lastId = 0;
  #isClosed = false;

  constructor(send: (report: EgressReport) => void) {
    this.#send = send;
  }

  /** Rejects when the engine is away or fails. */
  async request(client: string, pins: readonly Pin[]): Promise<void> {
    if (this.#isClosed) throw new Error('The engine is away');
    this.#lastId += 1;
    const id = this.#lastId;
    const done = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => this.settle(id, false), DEADLINE_MS);
      this.#waiting.set(id, { settle: resolve, timer });
      this.#send({ kind: 'pin', id, client, pins });
    });
    if (!done) throw new Error('The packet filter was not changed');
  }

  settle(id: number, done: boolean): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    clearTimeout(waiting.timer);
    waiting.settle(done);
  }

  /** The engine has ended; the next engine starts another resolver. */
  close(): void {
    this.#isClosed = true;
    for (const id of this.#waiting.keys()) this.settle(id, false);
  }
}
