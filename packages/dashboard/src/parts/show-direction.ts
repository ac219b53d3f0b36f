/** Characters that nobody sees and that turn round what stands behind them: `a<U+202E>gpj.exe` would look like `aexe.jpg`. */
const DIRECTIONS = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g;

/** A name that others chose, to be shown: what would change the order of its letters is seen instead. */
export function showDirection(name: string): string {
  return name.replaceAll(
    DIRECTIONS,
    (mark) => `<U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`,
  );
}
