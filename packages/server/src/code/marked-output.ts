import { firstOf, lengthOfBegun } from './find-marks.ts';
import { readPiece, ResultPieces, type ResultBytes } from './result-pieces.ts';
import { ForeignOutputFilter, type MarkFamilies } from './foreign-output-filter.ts';

/** How much of a stream one call gets to see; what comes beyond is read and thrown away. */
export const MAX_OUTPUT_BYTES = 10 * 1024 * 1024;
const CUT_MARK = '\n[output cut here: it exceeds 10 MiB]\n';
const FIRST_BUFFER_BYTES = 1024;

export interface Taken {
  readonly text: string;
  readonly isTruncated: boolean;
}

export type Listen = (data: Buffer) => void;
export type Shown = (result: ResultBytes) => void;

/** What is written to a stream around the output of a call. */
export interface Marks {
  readonly first: Buffer;
  readonly last: Buffer;
  /** Before each piece of what the code shows besides its output. */
  readonly shown: Buffer;
  /** Written behind the call, when it may be over for so long that its own marks are not kept any more. */
  readonly behind?: Buffer;
}

/** The driver's answer, or what there is of it on this stream; null when there is none. */
type Marked = Buffer | null;

const LENGTH_BYTES = 4;
const MORE = 0x80_00_00_00;
/** Only user code that writes marks exceeds it. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/**
 * One output stream of an interpreter, cut into calls. Each call begins and ends with a mark of its own that the interpreter
 * writes, the last one with what there is to say about it (see drivers/python-wire.py). In between, a third one stands before
 * pieces of what the code shows as values. What comes after the last one, from threads and children that go on, belongs to the
 * next call, but for the calls of others.
 */
export class MarkedOutput {
  #current = new Kept();
  #next = new Kept();
  /** Bytes that may be the beginning of a mark. */
  #held: Buffer = Buffer.alloc(0);
  #marks: Marks | undefined;
  #state: 'before' | 'inside' | 'result' | 'answer' = 'before';
  readonly #pieces = new ResultPieces();
  readonly #others: ForeignOutputFilter;
  #answer: Buffer = Buffer.alloc(0);
  #listen: Listen | undefined;
  #shown: Shown | undefined;
  /** A call has ended and its output was not taken yet. */
  #isOver = false;
  /** Output before the first call belongs to calls of other servers. */
  #isForeign: boolean;
  #marked = Promise.withResolvers<Marked>();
  #begun = Promise.withResolvers<void>();

  /** `isAttached`: others have used the interpreter before, and what they left is not for our first call. */
  constructor(families: MarkFamilies, isAttached = false) {
    this.#others = new ForeignOutputFilter(families);
    this.#isForeign = isAttached;
  }

  /**
   * `ended` resolves when the last mark was seen, or when no more will come. `listen` is given all that belongs to the call,
   * without a limit, as it comes; what it is given is its own only until it returns. `shown` is given each value that is shown.
   */
  expect(
    marks: Marks,
    listen?: Listen,
    shown?: Shown,
  ): { readonly begun: Promise<void>; readonly ended: Promise<Marked> } {
    this.#marks = marks;
    this.#listen = listen;
    this.#shown = shown;
    this.#pieces.clear();
    this.#state = 'before';
    this.#answer = Buffer.alloc(0);
    if (this.#current.bytes.length > 0) listen?.(this.#current.bytes);
    this.#marked = Promise.withResolvers<Marked>();
    this.#begun = Promise.withResolvers<void>();
    return { begun: this.#begun.promise, ended: this.#marked.promise };
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (this.#marks === undefined) {
      if (!this.#isForeign) this.#keepIdle(this.#others.pass(bytes));
      return;
    }
    let rest: Buffer | undefined = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    this.#held = Buffer.alloc(0);
    while (rest !== undefined && this.#marks !== undefined) rest = this.#take(rest, this.#marks);
    if (rest !== undefined) this.#next.add(this.#others.pass(rest));
  }

  /** Bytes are missing here: they were overwritten before they were read. */
  skip(): void {
    this.#current.isTruncated = true;
    this.#pieces.clear();
  }

  end(): void {
    this.#finish(null);
    if (!this.#isForeign) this.#keepIdle(this.#others.release());
  }

  /** What the call printed that is over, and what was printed between it and the one before. */
  take(): Taken {
    this.#finish(null);
    this.#isOver = false;
    const { text, isTruncated } = this.#current;
    this.#current = this.#next;
    this.#next = new Kept();
    return { text: isTruncated ? text + CUT_MARK : text, isTruncated };
  }

  /** Uses some of the bytes; returns the rest, or undefined when more must come first. */
  #take(data: Buffer, marks: Marks): Buffer | undefined {
    if (this.#state === 'answer') return this.#takeAnswer(data);
    if (this.#state === 'result') return this.#takeResult(data, marks);
    const sought = this.#soughtOf(marks);
    const found = firstOf(data, sought);
    if (found === undefined) {
      const end = data.length - Math.max(...sought.map((mark) => lengthOfBegun(data, mark)));
      this.#keep(data.subarray(0, end));
      this.#held = Buffer.from(data.subarray(end));
      return undefined;
    }
    this.#keep(data.subarray(0, found.position));
    this.#leaveOthers();
    const rest = data.subarray(found.position + found.mark.length);
    if (found.mark === marks.first) this.#begin();
    else if (found.mark === marks.last) this.#reachEnd('answer');
    else if (found.mark === marks.shown) this.#reachEnd('result');
    else {
      this.#finish(null);
      // It begins a unit of no known call.
      return data.subarray(found.position);
    }
    return rest;
  }

  #soughtOf({ first, last, shown, behind }: Marks): readonly Buffer[] {
    if (this.#isBetween) return [last];
    if (this.#state === 'inside') return [last, shown];
    return behind === undefined ? [first, last, shown] : [first, last, shown, behind];
  }

  #begin(): void {
    this.#state = 'inside';
    if (this.#isForeign) this.#current = new Kept();
    this.#isForeign = false;
    this.#begun.resolve();
  }

  #reachEnd(state: 'result' | 'answer'): void {
    // Its beginning is not kept any more; what is left of it may have something of others before it.
    if (this.#isForeign) {
      this.#isForeign = false;
      this.#current.isTruncated = true;
      this.#listen?.(this.#current.bytes);
    }
    this.#state = state;
  }

  #takeResult(data: Buffer, marks: Marks): Buffer | undefined {
    const piece = readPiece(data, marks.last);
    if (piece === 'unfinished') {
      this.#held = Buffer.from(data);
      return undefined;
    }
    this.#state = 'inside';
    if (piece === 'none') {
      this.#keep(marks.shown);
      return data;
    }
    const whole = this.#pieces.add(piece);
    if (whole !== undefined) this.#shown?.(whole);
    return data.subarray(piece.end);
  }

  #takeAnswer(data: Buffer): Buffer | undefined {
    const header = data.length < LENGTH_BYTES ? undefined : data.readUInt32BE(0);
    const end = header === undefined ? undefined : LENGTH_BYTES + (header & ~MORE);
    if (header === undefined || end === undefined || data.length < end) {
      this.#held = Buffer.from(data);
      if (data.length > MAX_ANSWER_BYTES) this.#finish(null);
      return undefined;
    }
    this.#answer = Buffer.concat([this.#answer, data.subarray(LENGTH_BYTES, end)]);
    if (header < MORE || this.#answer.length > MAX_ANSWER_BYTES) this.#finish(this.#answer);
    // Others may write between two pieces; that belongs to the next call.
    else [this.#state, this.#isBetween] = ['inside', true];
    return data.subarray(end);
  }

  #isBetween = false;

  /** While no call of ours is under way. */
  #keepIdle(data: Buffer): void {
    (this.#isOver ? this.#next : this.#current).add(data);
  }

  #keep(data: Buffer): void {
    this.#add(this.#state === 'before' ? this.#others.pass(data) : data);
  }

  #leaveOthers(): void {
    if (this.#state === 'before') this.#add(this.#others.release());
  }

  #add(data: Buffer): void {
    if (data.length === 0) return;
    if (this.#isBetween) return this.#next.add(data);
    this.#current.add(data);
    if (!this.#isForeign) this.#listen?.(data);
  }

  #finish(answer: Marked): void {
    if (this.#marks === undefined) return;
    // What was held in the hope of a mark is output after all, but for the beginning of a piece.
    if (this.#state === 'before' || this.#state === 'inside') this.#keep(this.#held);
    this.#leaveOthers();
    this.#held = Buffer.alloc(0);
    this.#marks = undefined;
    this.#listen = undefined;
    this.#shown = undefined;
    this.#isBetween = false;
    this.#isOver = true;
    this.#begun.resolve();
    this.#marked.resolve(answer);
  }
}

/** The first bytes of a stream, in one buffer that grows as needed. */
class Kept {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;
  isTruncated = false;

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Bytes that are not UTF-8 become U+FFFD. */
  get text(): string {
    return this.#buffer.toString('utf8', 0, this.#length);
  }

  add(data: Buffer): void {
    const kept = data.subarray(0, MAX_OUTPUT_BYTES - this.#length);
    if (kept.length < data.length) this.isTruncated = true;
    const length = this.#length + kept.length;
    if (length > this.#buffer.length) this.#grow(length);
    kept.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  #grow(bytes: number): void {
    const size = Math.min(Math.max(bytes, this.#buffer.length * 2, FIRST_BUFFER_BYTES), MAX_OUTPUT_BYTES);
    const grown = Buffer.alloc(size);
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
