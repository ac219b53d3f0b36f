import type { Terminal as Screen } from '@xterm/xterm';

/**
 * Terminal sequences whose cost grows with their count, which may be 2,147,483,647, and the dimension of the screen that bounds a
 * useful count: lines are inserted, deleted and scrolled; tabs and repeated characters move along a line.
 */
const COUNTED = {
  L: 'rows',
  M: 'rows',
  S: 'rows',
  T: 'rows',
  I: 'cols',
  Z: 'cols',
  b: 'cols',
} as const;

/**
 * Drops sequences with a count beyond the screen, so that the output of a sandbox cannot keep the page busy with large numbers.
 */
export function boundCounts(screen: Screen): void {
  for (const [final, side] of Object.entries(COUNTED))
    screen.parser.registerCsiHandler({ final }, ([count = 1]) => Number(count) > screen[side]);
}
