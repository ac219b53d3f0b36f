import type { FetchProgress } from '@svc/sdk';
import { formatBytes } from './amounts.ts';

const BAR_WIDTH = 24;

/** The progress of fetching an image, on one line of a terminal. */
export function fetchText({ message, done_bytes: done, total_bytes: total }: FetchProgress): string {
  return done === null || total === null ? message : `downloading ${bar(done, total)}`;
}

/** The same for a log: a line for each tenth. */
export function fetchLine({ message, done_bytes: done, total_bytes: total }: FetchProgress): string {
  if (done === null || total === null) return message;
  return `downloading ${Math.floor(shareOf(done, total) * 10) * 10}% of ${formatBytes(total)}`;
}

export function bar(done: number, total: number): string {
  const filled = Math.round(BAR_WIDTH * shareOf(done, total));
  return `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${formatBytes(done)} of ${formatBytes(total)}`;
}

/** An empty image is complete at once. */
function shareOf(done: number, total: number): number {
  return total === 0 ? 1 : Math.min(1, done / total);
}
