/** UTF-8 that keeps a byte order mark as a character, so that text is the same after reading and writing it. */
export function utf8Decoder(): InstanceType<typeof TextDecoder> {
  return new TextDecoder('utf-8', { ignoreBOM: true });
}
