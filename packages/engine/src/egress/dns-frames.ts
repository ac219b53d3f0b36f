/** Cuts a TCP stream into DNS messages, each after its length in two bytes (RFC 1035 §4.2.2). Holds at most one message. */
export class DnsFrames {
  readonly #maxBytes: number;
  #held: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The messages completed by `chunk`; null when one is longer than allowed, after which the stream is to be closed. */
  push(chunk: Buffer): readonly Buffer[] | null {
    let rest = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const messages: Buffer[] = [];
    while (rest.length >= 2) {
      const length = rest.readUInt16BE(0);
      if (length > this.#maxBytes) return null;
      if (rest.length < length + 2) break;
      messages.push(rest.subarray(2, length + 2));
      rest = rest.subarray(length + 2);
    }
    // Copied: a few held bytes must not keep the whole chunk alive.
    this.#held = Buffer.from(rest);
    return messages;
  }
}

export function frame(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
