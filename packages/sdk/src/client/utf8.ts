/** Text as it is: a byte order mark at its beginning is a character of it, so that what was read is the same when it is written. */
export function utf8Decoder(): InstanceType<typeof TextDecoder> {
  return new TextDecoder('utf-8', { ignoreBOM: true });
}
