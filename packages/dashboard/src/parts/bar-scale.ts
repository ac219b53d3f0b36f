/** The end of a scale: the smallest of 1, 2, 5, 10, … that is not less. 1 for zero. */
export function roundUp(amount: number): number {
  if (amount <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(amount));
  return (SCALE_ENDS.find((end) => end * power >= amount) ?? 10) * power;
}

const SCALE_ENDS = [1, 2, 5, 10];

/** The first, the one in the middle and the last: there is room for them on a phone. */
export function namesShown(names: readonly string[]): readonly string[] {
  const places = new Set([0, Math.floor((names.length - 1) / 2), names.length - 1]);
  return [...places].flatMap((place) => names[place] ?? []);
}
