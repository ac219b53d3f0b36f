import type { DiskSample } from './watched-disk.ts';

/** A disk that grew by this much since the last look is being written to. */
export const GROWTH_BYTES = 2 ** 20;
/** A disk that used this part of what it was granted needs more. */
const NEEDY_PART = 1 / 8;
/** What changed a little is taken into account after this long. */
const LITTLE_MS = 1000;
/** So much more room is worth sharing. */
const MORE_PART = 1 / 8;

/**
 * Room that was given to disks, and whether it still holds: it is there, and nobody needs or has left anything that matters.
 * What a disk uses of its grant, it has no longer; so what is granted to all goes down by as much as the room does.
 */
export class SharedRoom {
  readonly #sharedAt = performance.now();
  #grantedBytes: number;
  #hasMuch = false;
  #hasLittle = false;

  constructor(grantedBytes: number) {
    this.#grantedBytes = grantedBytes;
  }

  /** What one disk was before a look and at it, and what it was granted before. Samples of one that is as it was are the same. */
  note(before: DiskSample | undefined, now: DiskSample | undefined, grantedBytes: number): void {
    if (before === now) return;
    const grewBytes = (now?.usedBytes ?? 0) - (before?.usedBytes ?? 0);
    const isGone = now === undefined || before === undefined;
    if (isGone || grewBytes < 0 || grewBytes > Math.min(GROWTH_BYTES, grantedBytes * NEEDY_PART))
      this.#hasMuch = true;
    else if (grewBytes > 0) {
      this.#hasLittle = true;
      this.#grantedBytes -= grewBytes;
    }
  }

  /** SAFETY: never with less room than was granted. */
  holds(roomBytes: number, now = performance.now()): boolean {
    if (this.#hasMuch || roomBytes < this.#grantedBytes) return false;
    if (roomBytes > this.#grantedBytes * (1 + MORE_PART)) return false;
    return !this.#hasLittle || now - this.#sharedAt < LITTLE_MS;
  }
}
