/**
 * The largest u64, which means "no limit". JSON numbers are read as doubles here, exact up to 2^53 - 1 and rounded beyond: u64's
 * largest arrives as 2^64. So that no limit is ever rounded, every value from 2^53 on means unlimited.
 */
export const UNLIMITED = 2 ** 64;
const UNLIMITED_TEXT = '18446744073709551615';

export function isUnlimited(value: number): boolean {
  return value > Number.MAX_SAFE_INTEGER;
}

/** For JSON that others read as u64: they would refuse what a double is written as. */
export function toU64(value: number): number {
  if (!isUnlimited(value)) return value;
  // Written verbatim; readers see the declared type. TypeScript does not know `rawJSON` yet.
  const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };
  return rawJSON(UNLIMITED_TEXT) as number;
}
