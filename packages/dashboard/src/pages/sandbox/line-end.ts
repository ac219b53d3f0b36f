/**
 * The line end of an edited text, so that it is saved unchanged. `\r\n` when all lines end so; in any other text a `\r` stays a
 * character of its line.
 */
export function lineEndOf(text: string): '\n' | '\r\n' {
  return text.includes('\r\n') && !/(?<!\r)\n/.test(text) ? '\r\n' : '\n';
}
