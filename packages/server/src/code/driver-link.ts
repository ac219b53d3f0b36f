import type { TcpStream } from '@svc/contract';

/** How a unit ended, as the driver says. */
export type UnitEnd = 'success' | 'error' | 'interrupted';

export interface UnitAnswer {
  readonly end: UnitEnd;
  /** Streams that the user's code has taken away for good. */
  readonly lostStreams: readonly ('stdout' | 'stderr')[];
  /** The value of a last expression as it was shown. */
  readonly result: string | null;
  /** What ended the code. */
  readonly exception: UnitException | null;
}

export interface UnitException {
  readonly name: string;
  readonly message: string;
  readonly traceback: string;
}

const ENDS: Readonly<Record<number, UnitEnd>> = { 0x73: 'success', 0x65: 'error', 0x69: 'interrupted' };
const HEAD_BYTES = 2;
const LOST_STDOUT = 1;
const LOST_STDERR = 2;
/** Result, and name, message and traceback of an exception. */
const TEXTS = 4;
const LENGTH_BYTES = 4;
const NO_TEXT = 0xff_ff_ff_ff;
const MAX_TEXT_BYTES = 1024 * 1024;

/** The private connection to a driver: units go in, and for each one an answer comes back. See drivers/python-driver.py. */
export class DriverLink {
  readonly #stream: TcpStream;
  readonly #onMisuse: () => void;
  #answer: PromiseWithResolvers<UnitAnswer> | undefined;
  #received: Buffer = Buffer.alloc(0);

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
    if (this.#answer === undefined) return this.#onMisuse();
    this.#received = Buffer.concat([this.#received, chunk]);
    const answer = readAnswer(this.#received);
    if (answer === 'incomplete') return undefined;
    this.#received = Buffer.alloc(0);
    if (answer === 'misuse') return this.#onMisuse();
    this.#answer.resolve(answer);
    this.#answer = undefined;
    return undefined;
  }
}

function readAnswer(bytes: Buffer): UnitAnswer | 'incomplete' | 'misuse' {
  if (bytes.length < HEAD_BYTES) return 'incomplete';
  const [status = 0, lost = 0] = bytes;
  const end = ENDS[status];
  if (end === undefined) return 'misuse';
  const texts: (string | null)[] = [];
  let position = HEAD_BYTES;
  while (texts.length < TEXTS) {
    if (bytes.length < position + LENGTH_BYTES) return 'incomplete';
    const length = bytes.readUInt32BE(position);
    position += LENGTH_BYTES;
    if (length !== NO_TEXT && length > MAX_TEXT_BYTES) return 'misuse';
    const next = position + (length === NO_TEXT ? 0 : length);
    if (bytes.length < next) return 'incomplete';
    texts.push(length === NO_TEXT ? null : bytes.toString('utf8', position, next));
    position = next;
  }
  if (bytes.length > position) return 'misuse';
  const [result = null, name = null, message, traceback] = texts;
  return {
    end,
    lostStreams: [
      ...((lost & LOST_STDOUT) === 0 ? [] : (['stdout'] as const)),
      ...((lost & LOST_STDERR) === 0 ? [] : (['stderr'] as const)),
    ],
    result,
    exception: name === null ? null : { name, message: message ?? '', traceback: traceback ?? '' },
  };
}
