import type { DiskSample } from './watched-disk.ts';

/** A disk that grew by this much since the last check counts as being written to. */
export const GROWTH_BYTES = 2 ** 20;
/** A disk that used this part of its grant needs more. */
const NEEDY_PART = 1 / 8;
/** Small changes are taken into account after this long. */
const LITTLE_MS = 1000;
/** Additional space that is worth a new distribution. */
const MORE_PART = 1 / 8;

/**
 * The space granted to disks, and whether the distribution is still valid: the space is free, and no disk needs more or has released a
 * significant part. A disk's use reduces its grant, so the sum of the grants shrinks with the free space.
 */
export class GrantedSpace {
  readonly #sharedAt = performance.now();
  #grantedBytes: number;
  #hasMuch = false;
  #hasLittle = false;

  constructor(grantedBytes: number) {
    this.#grantedBytes = grantedBytes;
  }

  /** Records the samples of one disk before and at a check, and its grant before. Samples of an unchanged disk are the same object. */
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

  /** SAFETY: false when there is less space than was granted. */
  holds(roomBytes: number, now = performance.now()): boolean {
    if (this.#hasMuch || roomBytes < this.#grantedBytes) return false;
    if (roomBytes > this.#grantedBytes * (1 + MORE_PART)) return false;
    return !this.#hasLittle || now - this.#sharedAt < LITTLE_MS;
  }
}
