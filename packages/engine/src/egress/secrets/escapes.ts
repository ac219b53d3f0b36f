import { toBytes } from './latin1.ts';

/** An escape that stands in a text, with the bytes that it means; `cut` when the text ends within what may be one. */
export type Escape = { readonly length: number; readonly bytes: string } | 'cut' | null;

const JSON_SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '/': '\\/',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
};
/** Of every way to write a character: percent and short, as a unit of UTF-16, and as two of them. */
const LENGTHS = [1, 2, 3, 6, 12] as const;

/**
 * The ways in which requests write the characters of some words: percent-encoded, escaped as in JSON, a plus for a space. Other
 * escapes stay as they are, since what they mean is in none of the words.
 */
export class Escapes {
  readonly #meanings = new Map<string, string>();
  /** What an escape can begin with, and what one of a word's first character can. */
  readonly #beginnings = new Set<string>();
  readonly #firstBeginnings = new Set<string>();

  constructor(words: readonly string[]) {
    const characters = new Set(words.flatMap((word) => Array.from(word)));
    for (const character of characters) this.#add(character, this.#beginnings);
    for (const [first = ''] of words.map((word) => Array.from(word))) this.#add(first, this.#firstBeginnings);
    // A plus that a word has itself means itself.
    if (characters.has(' ') && !characters.has('+')) this.#meanings.set('+', ' ');
  }

  read(text: string, at: number, isLast: boolean): Escape {
    for (const length of LENGTHS) {
      if (at + length > text.length) break;
      const bytes = this.#meanings.get(text.slice(at, at + length).toLowerCase());
      if (bytes !== undefined) return { length, bytes };
    }
    return !isLast && this.#beginnings.has(cutAt(text, at)) ? 'cut' : null;
  }

  /** Whether a word may begin with the escape that the text ends within. */
  canBegin(cut: string): boolean {
    return this.#firstBeginnings.has(cutAt(cut, 0));
  }

  #add(character: string, beginnings: Set<string>): void {
    const short = JSON_SHORT[character];
    const ways = new Map([[unicode(character), toBytes(character)]]);
    if (short !== undefined) ways.set(short, character);
    for (const byte of toBytes(character)) ways.set(`%${hex(byte.charCodeAt(0), 2)}`, byte);
    for (const [way, bytes] of ways) {
      this.#meanings.set(way, bytes);
      for (let length = 1; length < way.length; length++) beginnings.add(way.slice(0, length));
    }
  }
}

function cutAt(text: string, at: number): string {
  return text.slice(at, at + Math.max(...LENGTHS)).toLowerCase();
}

/** Two escapes for what lies beyond the basic plane. */
function unicode(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${hex(unit.charCodeAt(0), 4)}`)
    .join('');
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
