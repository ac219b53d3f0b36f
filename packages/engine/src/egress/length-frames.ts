/** Size of the length prefix: two bytes as in DNS over TCP (RFC 1035 §4.2.2), or four. */
type LengthBytes = 2 | 4;

/** Splits a stream into length-prefixed messages. Buffers at most one message, and allocates nothing before its bytes arrive. */
export class LengthFrames {
  readonly #maxBytes: number;
  readonly #lengthBytes: LengthBytes;
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(maxBytes: number, lengthBytes: LengthBytes = 2) {
    this.#maxBytes = maxBytes;
    this.#lengthBytes = lengthBytes;
  }

  /** The messages completed by `chunk`; null when one is longer than allowed, after which the stream is to be closed. */
  push(chunk: Buffer): readonly Buffer[] | null {
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    const messages: Buffer[] = [];
    for (let length = this.#nextLength(); length !== null; length = this.#nextLength()) {
      if (length > this.#maxBytes) return null;
      const end = this.#lengthBytes + length;
      if (this.#heldBytes < end) break;
      const bytes = this.#joined();
      messages.push(bytes.subarray(this.#lengthBytes, end));
      this.#hold(bytes.subarray(end));
    }
    // Copied: a few held bytes must not keep the whole chunk alive.
    const last = this.#held.pop();
    if (last !== undefined) this.#held.push(Buffer.from(last));
    return messages;
  }

  #nextLength(): number | null {
    if (this.#heldBytes < this.#lengthBytes) return null;
    const [first] = this.#held;
    const start = first !== undefined && first.length >= this.#lengthBytes ? first : this.#joined();
    return start.readUIntBE(0, this.#lengthBytes);
  }

  #joined(): Buffer {
    const [first, ...others] = this.#held;
    const bytes = first !== undefined && others.length === 0 ? first : Buffer.concat(this.#held);
    this.#hold(bytes);
    return bytes;
  }

  #hold(bytes: Buffer): void {
    this.#held = bytes.length === 0 ? [] : [bytes];
    this.#heldBytes = bytes.length;
  }
}

export function frame(message: Buffer, lengthBytes: LengthBytes = 2): Buffer {
  const length = Buffer.alloc(lengthBytes);
  length.writeUIntBE(message.length, 0, lengthBytes);
  return Buffer.concat([length, message]);
}
