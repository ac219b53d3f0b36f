import { ChannelError } from './channel-error.ts';

/** The range that opens a connection: two words of 32 bits. */
export const RANGE_BYTES = 8;

/** The ids a client may use: counted up, wrapping, never 0. */
export class IdRange {
  readonly #first: number;
  /** Not in the range. */
  readonly #end: number;
  #next: number;

  constructor(first: number, end: number) {
    if (first >= end || end <= 1) throw new ChannelError('protocol', 'The sandbox sent an invalid id range');
    this.#first = Math.max(1, first);
    this.#end = end;
    this.#next = this.#first;
  }

  static read(bytes: Uint8Array): IdRange {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return new IdRange(view.getUint32(0), view.getUint32(4));
  }

  /** The next id that is not in use. */
  take(isTaken: (id: number) => boolean): number {
    for (let tried = this.#first; tried < this.#end; tried++) {
      const id = this.#next;
      this.#next = id + 1 < this.#end ? id + 1 : this.#first;
      if (!isTaken(id)) return id;
    }
    throw new ChannelError('refused', 'Too many calls are under way on this channel; use another one');
  }
}
