/**
 * Number of characters of a stream that a model is shown. The tail is longer, because the end is usually more
 * relevant.
 */
const HEAD_LENGTH = 12_000;
const TAIL_LENGTH = 18_000;
export const MAX_SHOWN_LENGTH = HEAD_LENGTH + TAIL_LENGTH;

export function isTooLong(text: string): boolean {
  return text.length > MAX_SHOWN_LENGTH;
}

/**
 * Head and tail of a text that is too long, with the number of omitted characters between them; `where` says where
 * the full text is.
 */
export function shorten(text: string, where: string): string {
  if (!isTooLong(text)) return text;
  const head = text.slice(0, HEAD_LENGTH).toWellFormed();
  const tail = text.slice(-TAIL_LENGTH).toWellFormed();
  const leftOut = text.length - MAX_SHOWN_LENGTH;
  return `${head}\n[${leftOut} characters are left out here; ${where}]\n${tail}`;
}
