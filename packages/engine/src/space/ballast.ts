import { rmSync, statSync, truncateSync } from 'node:fs';
import { runTool } from '../host/run-tool.ts';

const STAT_BLOCK_BYTES = 512;

/**
 * Space of the host's disk that is taken so that it can be given back when nothing else is left: what it takes to stop and to delete
 * (rows of the store, records, lines of logs) then still fits. It is given back piece by piece, because whoever filled the disk may
 * fill each piece too.
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
    this.#heldBytes = Math.min(bytes, allocatedBytes(file));
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

  /** What it takes to be whole again. */
  get missingBytes(): number {
    return this.#bytes - this.#heldBytes;
  }

  /** False when there is nothing left to give back. */
  giveBack(): boolean {
    if (this.#heldBytes === 0) return false;
    const left = Math.max(0, this.#heldBytes - this.#pieceBytes);
    // Neither needs room on any file system that overwrites in place.
    if (left === 0) rmSync(this.#file, { force: true });
    else truncateSync(this.#file, left);
    this.#heldBytes = left;
    return true;
  }

  /** Rejects where the file system cannot set space aside. */
  async takeAgain(): Promise<void> {
    await runTool('fallocate', ['--length', String(this.#bytes), this.#file]);
    this.#heldBytes = this.#bytes;
  }
}

function allocatedBytes(file: string): number {
  return (statSync(file, { throwIfNoEntry: false })?.blocks ?? 0) * STAT_BLOCK_BYTES;
}
