/** What scripts and pictures are joined with, and what chooses among the shapes of a letter: one of each stays behind another. */
const JOINERS = String.raw`\u200C\u200D`;
const SELECTORS = String.raw`\u180B-\u180D\u180F\uFE00-\uFE0F\u{E0100}-\u{E01EF}`;

/**
 * Characters that nobody sees and that do something: those that end a line, turn round what stands behind them, or only make two names
 * differ that look alike, or hide a text in another. What controls a terminal (C0, DEL, C1) comes to these.
 */
const HIDDEN = [
  String.raw`[\u007F-\u009F\u2028\u2029\uFFF9-\uFFFB]`,
  String.raw`(?![${JOINERS}${SELECTORS}])\p{Default_Ignorable_Code_Point}`,
  `(?<=[${JOINERS}])[${JOINERS}]`,
  `(?<=[${SELECTORS}])[${SELECTORS}]`,
].join('|');
const INVISIBLE = new RegExp(String.raw`[\u0000-\u001F]|${HIDDEN}`, 'gu');
/** The same, but for the ends of lines and what lies between columns. */
const INVISIBLE_IN_LINES = new RegExp(
  String.raw`[\u0000-\u0008\u000B\u000C\u000E-\u001F]|\r(?!\n)|${HIDDEN}`,
  'gu',
);

/** A name, or what else has one line, that others chose, to be shown: of `a<U+202E>gpj.exe` would be seen `aexe.jpg`. */
export function showLine(text: string): string {
  return text.replaceAll(INVISIBLE, nameOf);
}

/** The same of text that may have several lines. */
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
