import type { TcpStream } from '@svc/contract';

/** How a unit ended, as the driver says. */
export type UnitEnd = 'success' | 'error' | 'interrupted';

export interface UnitAnswer {
  readonly end: UnitEnd;
  /** Streams that the user's code has taken away for good. */
  readonly lostStreams: readonly ('stdout' | 'stderr')[];
}

const ENDS: Readonly<Record<number, UnitEnd>> = { 0x73: 'success', 0x65: 'error', 0x69: 'interrupted' };
const ANSWER_BYTES = 2;
const LOST_STDOUT = 1;
const LOST_STDERR = 2;

/** The private connection to a driver: units go in, and for each one two bytes come back. See drivers/python-driver.py. */
export class DriverLink {
  readonly #stream: TcpStream;
  readonly #onMisuse: () => void;
  #answer: PromiseWithResolvers<UnitAnswer> | undefined;
  #received: number[] = [];

  /** `onMisuse`: what came cannot be from the driver, or the driver has closed the connection. */
  constructor(stream: TcpStream, onMisuse: () => void) {
    this.#stream = stream;
    this.#onMisuse = onMisuse;
    void this.#read();
  }

  /** Never settles when the interpreter ends first. */
  run(code: string, mark: Buffer): Promise<UnitAnswer> {
    const source = Buffer.from(code);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(source.length);
    this.#answer = Promise.withResolvers<UnitAnswer>();
    this.#stream.write(Buffer.concat([head, source, mark])).catch(() => this.#onMisuse());
    return this.#answer.promise;
  }

  close(): void {
    this.#stream.close();
  }

  async #read(): Promise<void> {
    try {
      for await (const chunk of this.#stream.readable) this.#take(chunk);
    } catch {
      // Broken or closed: the same to us.
    }
    this.#onMisuse();
  }

  #take(chunk: Uint8Array): void {
    this.#received.push(...chunk.subarray(0, ANSWER_BYTES + 1));
    if (this.#received.length < ANSWER_BYTES) return;
    const [status = 0, lost = 0] = this.#received;
    const end = ENDS[status];
    const isAnswer =
      this.#received.length === ANSWER_BYTES && end !== undefined && this.#answer !== undefined;
    this.#received = [];
    if (!isAnswer) return this.#onMisuse();
    this.#answer?.resolve({
      end,
      lostStreams: [
        ...((lost & LOST_STDOUT) === 0 ? [] : (['stdout'] as const)),
        ...((lost & LOST_STDERR) === 0 ? [] : (['stderr'] as const)),
      ],
    });
    this.#answer = undefined;
  }
}
