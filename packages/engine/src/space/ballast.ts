import { rmSync, statSync, truncateSync } from 'node:fs';
import { allocatedBytesOf } from '../host/allocated-bytes.ts';
import { runTool } from '../host/run-tool.ts';

/**
 * Disk space that is allocated in advance and released when the disk is full, so that stops and deletes (rows of the store, records, log
 * lines) still succeed. It is released piece by piece, because the process that filled the disk may fill each piece too.
 */
export class Ballast {
  readonly #file: string;
  readonly #bytes: number;
  readonly #pieceBytes: number;
  #heldBytes: number;

  constructor(file: string, bytes: number, pieces: number) {
    this.#file = file;
    this.#bytes = bytes;
    this.#pieceBytes = Math.ceil(bytes / pieces);
    this.#heldBytes = Math.min(bytes, allocatedBytesOf(statSync(file, { throwIfNoEntry: false })));
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get isWhole(): boolean {
    return this.#heldBytes >= this.#bytes;
  }

  get pieceBytes(): number {
    return this.#pieceBytes;
  }

  /** The bytes that are missing from the full size. */
  get missingBytes(): number {
    return this.#bytes - this.#heldBytes;
  }

  /** Releases one piece. False when there is none left. */
  giveBack(): boolean {
    if (this.#heldBytes === 0) return false;
    const left = Math.max(0, this.#heldBytes - this.#pieceBytes);
    // Neither call needs space on file systems that overwrite in place.
    if (left === 0) rmSync(this.#file, { force: true });
    else truncateSync(this.#file, left);
    this.#heldBytes = left;
    return true;
  }

  /** Allocates the missing space. Rejects where the file system cannot allocate in advance. */
  async takeAgain(): Promise<void> {
    await runTool('fallocate', ['--length', String(this.#bytes), this.#file]);
    this.#heldBytes = this.#bytes;
  }
}
