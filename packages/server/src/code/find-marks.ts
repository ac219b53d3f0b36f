/** Length of every mark that is written around the output of a unit. */
export const MARK_BYTES = 16;

/** The mark that comes first in the data; of two at the same place the one that is named first. */
export function firstOf(
  data: Buffer,
  marks: readonly Buffer[],
): { readonly mark: Buffer; readonly position: number } | undefined {
  let first: { readonly mark: Buffer; readonly position: number } | undefined;
  for (const mark of marks) {
    const position = data.indexOf(mark);
    if (position !== -1 && position < (first?.position ?? data.length)) first = { mark, position };
  }
  return first;
}

/** How many of the last bytes may be the beginning of the mark. */
export function lengthOfBegun(data: Buffer, mark: Buffer): number {
  for (let length = Math.min(data.length, mark.length - 1); length > 0; length--) {
    if (data.subarray(data.length - length).equals(mark.subarray(0, length))) return length;
  }
  return 0;
}
