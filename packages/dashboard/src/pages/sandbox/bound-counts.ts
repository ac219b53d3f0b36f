import type { Terminal as Screen } from '@xterm/xterm';

/**
 * Sequences that the terminal works off once for each time that they count, which may be 2,147,483,647, and the side of the screen that
 * such a count has a use for: lines are inserted, deleted and scrolled; tabs and repeated characters move along one.
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
 * So that the numbers in what a sandbox prints do not say how long the page is busy with it: a sequence that counts beyond the screen is
 * passed over.
 */
export function boundCounts(screen: Screen): void {
  for (const [final, side] of Object.entries(COUNTED))
    screen.parser.registerCsiHandler({ final }, ([count = 1]) => Number(count) > screen[side]);
}
