import { readFileSync } from 'node:fs';

/**
 * What the whole host has written since it was started, in one small file: where that is little, no disk needs to be asked what it has of
 * it. https://docs.kernel.org/admin-guide/mm/ (vmstat)
 */
export interface HostWrites {
  /** Of files, changed in memory; those that are past the page cache, or only set aside, are not among them. */
  readonly dirtiedBytes: number;
  /** Given to block devices, loop devices too. */
  readonly sentBytes: number;
}

let knownPageBytes: number | undefined;

/** As the kernel told this process when it was started. https://man7.org/linux/man-pages/man3/getauxval.3.html (AT_PAGESZ) */
function pageBytes(): number {
  if (knownPageBytes === undefined) {
    const vector = readFileSync('/proc/self/auxv');
    const words = new BigUint64Array(vector.buffer, vector.byteOffset, Math.floor(vector.length / 8));
    const at = words.findIndex((word, index) => index % 2 === 0 && word === AT_PAGESZ);
    // The largest there is: then disks are looked at more often than they need be.
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
