/** The UTF-8 bytes of a text, one character each, so that matching does not depend on where a chunk ends. */
export function toBytes(text: string): string {
  return Buffer.from(text).toString('latin1');
}
