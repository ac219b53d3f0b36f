import { readFileSync } from 'node:fs';

/**
 * The writes of the whole host since boot, read from one small file: when it is little, the disks need not be checked one by one.
 * https://docs.kernel.org/admin-guide/mm/ (vmstat)
 */
export interface HostWrites {
  /** Dirtied page cache; direct writes and allocations are not included. */
  readonly dirtiedBytes: number;
  /** Sent to block devices, including loop devices. */
  readonly sentBytes: number;
}

let knownPageBytes: number | undefined;

/** The page size from the auxiliary vector. https://man7.org/linux/man-pages/man3/getauxval.3.html (AT_PAGESZ) */
function pageBytes(): number {
  if (knownPageBytes === undefined) {
    const vector = readFileSync('/proc/self/auxv');
    const words = new BigUint64Array(vector.buffer, vector.byteOffset, Math.floor(vector.length / 8));
    const at = words.findIndex((word, index) => index % 2 === 0 && word === AT_PAGESZ);
    // The largest page size: disks are then checked more often than necessary.
    knownPageBytes = at < 0 ? 65_536 : Number(words[at + 1]);
  }
  return knownPageBytes;
}

const AT_PAGESZ = 6n;

export function readHostWrites(): HostWrites {
  const text = readFileSync('/proc/vmstat', 'latin1');
  return {
    dirtiedBytes: Number(/^nr_dirtied (\d+)/m.exec(text)?.[1]) * pageBytes(),
    sentBytes: Number(/^pgpgout (\d+)/m.exec(text)?.[1]) * 1024,
  };
}
