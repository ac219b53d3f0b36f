/** Frames of RFC 6455, for the client's side of a connection whose messages are one stream of bytes. */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

const FIN = 0x80;
const MASKED = 0x80;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MASK_BYTES = 4;
const MAX_CONTROL_BYTES = 125;

/** The head of a frame from a client; its payload has to be masked with `mask`, the last four bytes. */
export function encodeHead(opcode: number, length: number, mask: Uint8Array): Uint8Array {
  const extraBytes = length < LENGTH_16 ? 0 : length < 0x10000 ? 2 : 8;
  const head = new Uint8Array(2 + extraBytes + MASK_BYTES);
  const view = new DataView(head.buffer);
  head[0] = FIN | opcode;
  if (extraBytes === 0) head[1] = MASKED | length;
  else if (extraBytes === 2) {
    head[1] = MASKED | LENGTH_16;
    view.setUint16(2, length);
  } else {
    head[1] = MASKED | LENGTH_64;
    view.setBigUint64(2, BigInt(length));
  }
  head.set(mask, 2 + extraBytes);
  return head;
}

export interface ControlFrame {
  readonly opcode: typeof OPCODE.close | typeof OPCODE.ping | typeof OPCODE.pong;
  readonly payload: Uint8Array;
}

/**
 * Parses a server's frames as they arrive. Payloads of binary messages are passed on in the pieces in which they arrive, without
 * a copy; text is left out.
 */
export class FrameReader {
  readonly #head = new Uint8Array(10);
  #headLength = 0;
  #headNeeded = 2;
  #opcode = 0;
  /** Of the message that continuations belong to. */
  #isBinary = false;
  #control: Uint8Array = new Uint8Array(0);
  #left = 0;
  #isInPayload = false;

  /** @throws Error when the bytes are no frames of a server */
  push(chunk: Uint8Array): {
    readonly data: readonly Uint8Array[];
    readonly control: readonly ControlFrame[];
  } {
    const data: Uint8Array[] = [];
    const control: ControlFrame[] = [];
    let position = 0;
    while (position < chunk.length) {
      if (!this.#isInPayload) {
        position = this.#takeHead(chunk, position);
      } else {
        const piece = chunk.subarray(position, position + this.#left);
        position += piece.length;
        this.#takePayload(piece, data);
      }
      if (this.#isInPayload && this.#left === 0) this.#endFrame(control);
    }
    return { data, control };
  }

  #takeHead(chunk: Uint8Array, start: number): number {
    const taken = chunk.subarray(start, start + this.#headNeeded - this.#headLength);
    this.#head.set(taken, this.#headLength);
    this.#headLength += taken.length;
    if (this.#headLength < this.#headNeeded) return start + taken.length;
    const second = this.#head[1] ?? 0;
    if (second & MASKED) throw new Error('The server sent a masked frame');
    const short = second & 0x7f;
    this.#headNeeded = short < LENGTH_16 ? 2 : short === LENGTH_16 ? 4 : 10;
    if (this.#headLength === this.#headNeeded) this.#beginPayload(short);
    return start + taken.length;
  }

  #beginPayload(short: number): void {
    const view = new DataView(this.#head.buffer);
    this.#opcode = (this.#head[0] ?? 0) & 0x0f;
    this.#left =
      short < LENGTH_16 ? short : short === LENGTH_16 ? view.getUint16(2) : Number(view.getBigUint64(2));
    if (this.#opcode >= OPCODE.close && this.#left > MAX_CONTROL_BYTES) {
      throw new Error('The server sent a control frame that is too long');
    }
    if (this.#opcode < OPCODE.close && this.#opcode !== OPCODE.continuation) {
      this.#isBinary = this.#opcode === OPCODE.binary;
    }
    this.#control = new Uint8Array(0);
    this.#isInPayload = true;
    this.#headLength = 0;
    this.#headNeeded = 2;
  }

  #takePayload(piece: Uint8Array, data: Uint8Array[]): void {
    this.#left -= piece.length;
    if (this.#opcode >= OPCODE.close) {
      const joined = new Uint8Array(this.#control.length + piece.length);
      joined.set(this.#control);
      joined.set(piece, this.#control.length);
      this.#control = joined;
    } else if (this.#isBinary && piece.length > 0) data.push(piece);
  }

  #endFrame(control: ControlFrame[]): void {
    this.#isInPayload = false;
    const opcode = this.#opcode;
    if (opcode === OPCODE.close || opcode === OPCODE.ping || opcode === OPCODE.pong) {
      control.push({ opcode, payload: this.#control });
    }
  }
}
