import { MAX_SHOWN_LENGTH } from './bounded-text.ts';

export interface Lines {
  readonly text: string;
  /** Null when there are none. */
  readonly firstLine: number | null;
  readonly lastLine: number | null;
  /** Whether the file continues after the text. */
  readonly hasMore: boolean;
  /** The last line was truncated, because it is longer than the limit. */
  readonly isCut: boolean;
}

/** Reads lines of a text from an offset, as many as can be shown, and no further. The first line is 1. */
export async function readLines(
  chunks: AsyncIterable<Uint8Array>,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<Lines> {
  const decoder = new TextDecoder();
  const taken: string[] = [];
  let length = 0;
  let line = 1;
  let rest = '';
  const answer = (hasMore: boolean, isCut = false): Lines => ({
    text: taken.join(''),
    firstLine: taken.length === 0 ? null : offset,
    lastLine: taken.length === 0 ? null : offset + taken.length - 1,
    hasMore,
    isCut,
  });
  /** @returns the answer once it is complete */
  const take = (text: string): Lines | undefined => {
    if (line < offset) {
      line += 1;
      return undefined;
    }
    if (taken.length >= limit) return answer(true);
    if (length + text.length > MAX_SHOWN_LENGTH) {
      if (taken.length > 0) return answer(true);
      taken.push(text.slice(0, MAX_SHOWN_LENGTH).toWellFormed());
      return answer(true, true);
    }
    taken.push(text);
    length += text.length;
    line += 1;
    return undefined;
  };
  for await (const chunk of chunks) {
    const pieces = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = pieces.pop() ?? '';
    for (const piece of pieces) {
      const complete = take(`${piece}\n`);
      if (complete !== undefined) return complete;
    }
    // Bounds the memory for a line without an end, also for a skipped one.
    if (rest.length > MAX_SHOWN_LENGTH && line >= offset) return take(rest) ?? answer(true, true);
    if (line < offset) rest = '';
  }
  rest += decoder.decode();
  return (rest === '' ? undefined : take(rest)) ?? answer(false);
}
