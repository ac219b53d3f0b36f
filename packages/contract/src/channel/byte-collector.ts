/** Keeps the first bytes of a stream, up to a limit, in one buffer of its own. */
export class ByteCollector {
  readonly #limitBytes: number;
  #buffer = new Uint8Array(0);
  #length = 0;
  #isTruncated = false;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  add(data: Uint8Array): void {
    const kept = data.subarray(0, this.#limitBytes - this.#length);
    if (kept.length < data.length) this.#isTruncated = true;
    if (kept.length === 0) return;
    this.#reserve(this.#length + kept.length);
    this.#buffer.set(kept, this.#length);
    this.#length += kept.length;
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#buffer.length) return;
    const grown = new Uint8Array(Math.min(Math.max(bytes, this.#buffer.length * 2, 1024), this.#limitBytes));
    grown.set(this.bytes());
    this.#buffer = grown;
  }
}
