/** 32 hexadecimal digits. Not a UUID: pages without encryption cannot make those by themselves. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
