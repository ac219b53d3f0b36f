import { MAX_SHOWN_LENGTH } from './bounded-text.ts';

export interface Lines {
  readonly text: string;
  /** Null when there are none. */
  readonly firstLine: number | null;
  readonly lastLine: number | null;
  /** Whether the file goes on behind the text. */
  readonly hasMore: boolean;
  /** The last line is longer than can be shown, and was cut. */
  readonly isCut: boolean;
}

/** Some lines of a text, as many as can be shown; reads no further than it must. The first line is 1. */
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
  /** @returns the answer, once it is complete */
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
    // A line without an end must not be collected for ever, nor one that is only passed over.
    if (rest.length > MAX_SHOWN_LENGTH && line >= offset) return take(rest) ?? answer(true, true);
    if (line < offset) rest = '';
  }
  rest += decoder.decode();
  return (rest === '' ? undefined : take(rest)) ?? answer(false);
}
