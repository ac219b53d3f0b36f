import { formatBytes } from './amounts.ts';

/** The disk of the data folder, in one line. */
export function describeDisk(disk: {
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly reserveBytes: number;
  readonly promisedBytes: number;
  readonly isShort: boolean;
  /** Absent from servers of an earlier version. */
  readonly fault?: string | null;
}): string {
  const { freeBytes, totalBytes, reserveBytes, promisedBytes, isShort, fault = null } = disk;
  if (fault !== null) return fault;
  const amounts = `${formatBytes(freeBytes)} of ${formatBytes(totalBytes)} free, ${formatBytes(reserveBytes)} of it kept`;
  const promised = `disks and volumes in use may grow by ${formatBytes(promisedBytes)}`;
  return `disk: ${amounts}; ${promised}${isShort ? '; nearly full, so nothing new is begun' : ''}`;
}
