import { toBytes } from './latin1.ts';

/** An escape sequence and the bytes that it means; `cut` when the text ends within one. */
export type Escape = { readonly length: number; readonly bytes: string } | 'cut' | null;

const JSON_SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '/': '\\/',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
};
/** Longest length of each form: percent, short, one UTF-16 unit, and two of them. */
const LENGTHS = [1, 2, 3, 6, 12] as const;

/**
 * The escape sequences by which requests can write the characters of some words: percent-encoded, JSON escapes, and a plus for a space.
 * Other escapes are not decoded, since their characters are in none of the words.
 */
export class Escapes {
  readonly #meanings = new Map<string, string>();
  /** The first characters of escapes, and the escapes of the words' first characters. */
  readonly #beginnings = new Set<string>();
  readonly #firstBeginnings = new Set<string>();

  constructor(words: readonly string[]) {
    const characters = new Set(words.flatMap((word) => Array.from(word)));
    for (const character of characters) this.#add(character, this.#beginnings);
    for (const [first = ''] of words.map((word) => Array.from(word))) this.#add(first, this.#firstBeginnings);
    // A plus in a word stands for itself.
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

  /** Whether a word may begin with the escape at the truncated end of the text. */
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

/** A surrogate pair for characters beyond the basic plane. */
function unicode(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${hex(unit.charCodeAt(0), 4)}`)
    .join('');
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
