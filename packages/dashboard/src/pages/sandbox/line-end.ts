/**
 * What ends the lines of a text that is edited, so that it is saved with the same. `\r\n` where every line ends so; in any other text a
 * `\r` stays a character of its line.
 */
export function lineEndOf(text: string): '\n' | '\r\n' {
  return text.includes('\r\n') && !/(?<!\r)\n/.test(text) ? '\r\n' : '\n';
}
