import { readFileSync } from 'node:fs';

/**
 * What the whole host has written since it was started, in one small file: where that is little, no disk needs to be asked what it has of
 * it. https://docs.kernel.org/admin-guide/mm/ (vmstat)
 */
export interface HostWrites {
  /** Of files, changed in memory; those that are past the page cache, or only set aside, are not among them. */
  readonly dirtiedPages: number;
  /** Given to block devices, loop devices too. */
  readonly sentBytes: number;
}

export function readHostWrites(): HostWrites {
  const text = readFileSync('/proc/vmstat', 'latin1');
  return {
    dirtiedPages: Number(/^nr_dirtied (\d+)/m.exec(text)?.[1]),
    sentBytes: Number(/^pgpgout (\d+)/m.exec(text)?.[1]) * 1024,
  };
}
