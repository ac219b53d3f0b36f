import type { EgressReport, Pin } from './egress-messages.ts';

/** Longer than the packet filter ever takes for a change, shorter than programs wait for a name. */
const DEADLINE_MS = 4000;

/** Asks the engine to let sandboxes reach what they are about to be told of, and waits until it has. */
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

  /** Rejects when the engine is away or cannot. */
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

  /** The engine is gone for good; another starts another resolver. */
  close(): void {
    this.#isClosed = true;
    for (const id of this.#waiting.keys()) this.settle(id, false);
  }
}
