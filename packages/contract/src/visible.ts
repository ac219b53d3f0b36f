/**
 * Characters that nobody sees and that do something: those that control a terminal (C0, DEL, C1), end a line, turn round what stands
 * behind them, or only make two names differ that look alike. Those that scripts and pictures are joined with (U+200C, U+200D) are none
 * of them.
 */
const INVISIBLE =
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  /[\u0000-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB]/g;
/** The same, but for the ends of lines and what lies between columns. */
const INVISIBLE_IN_LINES =
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB]|\r(?!\n)/g;

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
  return json.replaceAll(INVISIBLE_IN_LINES, (mark) => `\\u${codeOf(mark)}`);
}

function nameOf(mark: string): string {
  return `<U+${codeOf(mark)}>`;
}

function codeOf(mark: string): string {
  return mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
}
