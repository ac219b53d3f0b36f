const MAX_LENGTH = 4096;

/** Program and arguments as they are stored, cut off when they are long. */
export function shownCommand(words: readonly string[]): readonly string[] {
  const shown: string[] = [];
  let left = MAX_LENGTH;
  for (const word of words) {
    if (word.length > left) return [...shown, `${word.slice(0, left).toWellFormed()}…`];
    shown.push(word.toWellFormed());
    left -= word.length + 1;
  }
  return shown;
}

const MAX_AUDITED_LENGTH = 256;

/** The same for the audit log: one text, shorter. */
export function auditedCommand(words: readonly string[]): string {
  const text = words.slice(0, MAX_AUDITED_LENGTH).join(' ').toWellFormed();
  return text.length > MAX_AUDITED_LENGTH ? `${text.slice(0, MAX_AUDITED_LENGTH).toWellFormed()}…` : text;
}
