/** The bytes of a text (UTF-8), one character each, so that a match is the same wherever bytes are cut. */
export function toBytes(text: string): string {
  return Buffer.from(text).toString('latin1');
}
