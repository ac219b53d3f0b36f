/** 32 hexadecimal digits. Not `randomUUID`, which browsers offer only to pages that were loaded over TLS. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
