import { PlatformError } from '@svc/contract';

/** Maximum number of listed lines when a text occurs more than once. */
const MAX_LISTED_LINES = 10;

export interface Edit {
  readonly text: string;
  /** Line numbers of the replaced texts, from 1. */
  readonly lines: readonly number[];
}

/**
 * Replaces a text by another.
 * @throws PlatformError `invalid_request` with a hint, when the text is missing, or occurs more than once without
 * `isEvery`
 */
export function editText(
  path: string,
  content: string,
  {
    oldText,
    newText,
    isEvery,
  }: { readonly oldText: string; readonly newText: string; readonly isEvery: boolean },
): Edit {
  if (oldText === newText)
    throw refused('new_text', 'new_text is the same as old_text: nothing would change');
  const pieces = content.split(oldText);
  const lines = linesOf(pieces, oldText);
  if (lines.length === 0) throw notFound(path, content, oldText);
  if (lines.length > 1 && !isEvery) {
    const listed =
      lines.slice(0, MAX_LISTED_LINES).join(', ') + (lines.length > MAX_LISTED_LINES ? ' and more' : '');
    const message =
      `old_text is in ${path} ${lines.length} times, at lines ${listed}; ` +
      'give more of the lines around the one that is meant, or set replace_all';
    throw refused('old_text', message, { occurrences: lines.length });
  }
  return { text: pieces.join(newText), lines };
}

function linesOf(pieces: readonly string[], oldText: string): number[] {
  const within = countBreaks(oldText);
  const lines: number[] = [];
  let line = 1;
  for (const piece of pieces.slice(0, -1)) {
    line += countBreaks(piece);
    lines.push(line);
    line += within;
  }
  return lines;
}

function countBreaks(text: string): number {
  return text.split('\n').length - 1;
}

/** The usual cause is white space that was not copied exactly. */
function notFound(path: string, content: string, oldText: string): PlatformError {
  const near = lineOfSimilar(content, oldText);
  const hint =
    near === undefined
      ? 'read it again with sandbox_read_file'
      : `line ${near} is the same but for its white space: copy it as sandbox_read_file shows it`;
  return refused('old_text', `old_text is not in ${path}; ${hint}`, { occurrences: 0 });
}

function lineOfSimilar(content: string, oldText: string): number | undefined {
  const first = oldText.split('\n').find((line) => line.trim() !== '') ?? '';
  const wanted = first.trim().replaceAll(/\s+/g, ' ');
  if (wanted === '') return undefined;
  const at = content.split('\n').findIndex((line) => line.trim().replaceAll(/\s+/g, ' ') === wanted);
  return at === -1 ? undefined : at + 1;
}

function refused(
  field: string,
  message: string,
  more: Readonly<Record<string, unknown>> = {},
): PlatformError {
  return new PlatformError('invalid_request', message, { details: { field, reason: message, ...more } });
}
