/**
 * Text here is bytes, one character each (latin1), so that a match is the same wherever the bytes were cut.
 */
export type Search =
  | { readonly kind: 'found'; readonly start: number; readonly end: number; readonly index: number }
  /** From `start` on it may become one when more follows. */
  | { readonly kind: 'partial'; readonly start: number }
  | { readonly kind: 'none' };

/** One character of a placeholder, in each way that it can be written. Letters of encoded ways are compared in lower case. */
interface Character {
  readonly raw: string;
  readonly encoded: readonly string[];
}

interface Placeholder {
  readonly index: number;
  readonly characters: readonly Character[];
}

const JSON_SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '/': '\\/',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
};

/**
 * Finds placeholders in what a sandbox sends: as they are, percent-encoded, or escaped as in JSON, each character in its own way.
 * Where two begin at the same place the longer one counts.
 */
export class Placeholders {
  readonly #placeholders: readonly Placeholder[];
  /** Whatever a placeholder can begin with. */
  readonly #starts: RegExp;

  constructor(placeholders: readonly string[]) {
    this.#placeholders = placeholders
      .map((placeholder, index) => ({ index, characters: Array.from(placeholder, waysToWrite) }))
      .toSorted((one, other) => other.characters.length - one.characters.length);
    const firsts = this.#placeholders.flatMap(({ characters: [first] }) =>
      first === undefined ? [] : [first.raw, ...first.encoded].map((way) => way.charCodeAt(0)),
    );
    const codes = [...new Set(firsts)].map((code) => `\\x${code.toString(16).padStart(2, '0')}`);
    // Without any the class is empty, and matches nothing.
    this.#starts = new RegExp(`[${codes.join('')}]`, 'g');
  }

  /** The first one at or behind `from`. When nothing follows the text, nothing in it is partial. */
  search(text: string, from: number, isLast: boolean): Search {
    this.#starts.lastIndex = from;
    for (let at = this.#starts.exec(text); at !== null; at = this.#starts.exec(text)) {
      const start = at.index;
      for (const { index, characters } of this.#placeholders) {
        const { end, isCut } = match(text, start, characters);
        if (isCut && !isLast) return { kind: 'partial', start };
        if (end !== null) return { kind: 'found', start, end, index };
      }
      this.#starts.lastIndex = start + 1;
    }
    return { kind: 'none' };
  }

  /** Indexes of all that are in the text. */
  allIn(text: string): readonly number[] {
    const found = new Set<number>();
    let result = this.search(text, 0, true);
    while (result.kind === 'found') {
      found.add(result.index);
      result = this.search(text, result.end, true);
    }
    return [...found];
  }
}

export function toBytes(text: string): string {
  return Buffer.from(text).toString('latin1');
}

interface Match {
  /** Null when there is none. */
  readonly end: number | null;
  /** With more text there might be one, or a longer one. */
  readonly isCut: boolean;
}

function match(text: string, start: number, characters: readonly Character[]): Match {
  // More than one when a character can be read in two ways, for instance a percent sign.
  let positions = [start];
  let isCut = false;
  for (const { raw, encoded } of characters) {
    const next: number[] = [];
    for (const position of positions) {
      const lead = text[position];
      const isEncoded = lead === '%' || lead === '\\' || lead === '+';
      if (lead === undefined) isCut = true;
      else if (text.startsWith(raw, position)) next.push(position + raw.length);
      else if (raw.startsWith(text.slice(position, position + raw.length))) isCut = true;
      if (isEncoded)
        for (const way of encoded) {
          const there = text.slice(position, position + way.length).toLowerCase();
          if (there === way) next.push(position + way.length);
          else if (way.startsWith(there)) isCut = true;
        }
    }
    if (next.length === 0) return { end: null, isCut };
    positions = next;
  }
  return { end: Math.max(...positions), isCut };
}

function waysToWrite(character: string): Character {
  const bytes = [...Buffer.from(character)];
  const percent = bytes.map((byte) => `%${hex(byte, 2)}`).join('');
  // As many as there are units of UTF-16: two for what lies beyond the basic plane.
  const unicode = character
    .split('')
    .map((unit) => `\\u${hex(unit.charCodeAt(0), 4)}`)
    .join('');
  const short = JSON_SHORT[character];
  return {
    raw: toBytes(character),
    encoded: [percent, unicode, ...(short === undefined ? [] : [short]), ...(character === ' ' ? ['+'] : [])],
  };
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
