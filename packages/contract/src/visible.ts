/** Joiners and variation selectors, which scripts and emoji need: a single one stays, a repeated one is shown. */
const JOINERS = String.raw`\u200C\u200D`;
const SELECTORS = String.raw`\u180B-\u180D\u180F\uFE00-\uFE0F\u{E0100}-\u{E01EF}`;

/**
 * Invisible characters with an effect: they end a line, reverse the direction of text, make two names differ that look alike, or
 * hide a text in another. The control characters of terminals (C0, DEL, C1) are added to these.
 */
const HIDDEN = [
  String.raw`[\u007F-\u009F\u2028\u2029\uFFF9-\uFFFB]`,
  String.raw`(?![${JOINERS}${SELECTORS}])\p{Default_Ignorable_Code_Point}`,
  `(?<=[${JOINERS}])[${JOINERS}]`,
  `(?<=[${SELECTORS}])[${SELECTORS}]`,
].join('|');
const INVISIBLE = new RegExp(String.raw`[\u0000-\u001F]|${HIDDEN}`, 'gu');
/** The same except line ends and tabs. */
const INVISIBLE_IN_LINES = new RegExp(
  String.raw`[\u0000-\u0008\u000B\u000C\u000E-\u001F]|\r(?!\n)|${HIDDEN}`,
  'gu',
);

/** Makes an untrusted name, or other text of one line, safe to show: `a<U+202E>gpj.exe` would look like `aexe.jpg`. */
export function showLine(text: string): string {
  return text.replaceAll(INVISIBLE, nameOf);
}

/** The same for text that may have several lines. */
export function showLines(text: string): string {
  return text.replaceAll(INVISIBLE_IN_LINES, nameOf);
}

/** JSON that means the same, and in which nothing is invisible. */
export function showJson(json: string): string {
  return json.replaceAll(INVISIBLE_IN_LINES, (mark) =>
    Array.from({ length: mark.length }, (_, at) => `\\u${hex(mark.charCodeAt(at))}`).join(''),
  );
}

function nameOf(mark: string): string {
  return `<U+${hex(mark.codePointAt(0) ?? 0)}>`;
}

function hex(code: number): string {
  return code.toString(16).toUpperCase().padStart(4, '0');
}
